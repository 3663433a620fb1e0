"""`tonari bench` of far memory, in quick form: stream, matmul, stencil, fft3d, fault."""

import glob
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness.bench import BenchTest  # noqa: E402
from harness.far import need_faults  # noqa: E402
from harness.jobs import eventually  # noqa: E402

TIMED = {"matmul": "512", "stencil": "640", "fft3d": "96"}
RIVALS = ["swap-zram", "swap-file", "mmap"]


def has_rivals():
    """Whether this is a machine of which the kernel's ways of far memory can be asked."""
    if os.geteuid() != 0 or not os.path.exists("/sys/class/zram-control/hot_add"):
        return False
    with open("/proc/self/mounts") as file:
        mounts = [line.split() for line in file]
    folders = [m[1] for m in mounts if m[2] == "cgroup" and "memory" in m[3].split(",")]
    for mount in mounts:
        controllers = os.path.join(mount[1], "cgroup.controllers")
        if mount[2] == "cgroup2" and os.path.exists(controllers):
            with open(controllers) as file:
                folders += [mount[1]] * ("memory" in file.read().split())
    return any(os.access(folder, os.W_OK) for folder in folders)


def made_for_rivals():
    """Swap areas, files, cgroups: what rivals need, and must not leave."""
    with open("/proc/swaps") as file:
        swaps = [line.split()[0] for line in file][1:]
    files = glob.glob("/var/tmp/tonari-bench-*") + glob.glob("/sys/fs/cgroup/**/tonari-bench-*", recursive=True)
    return set(swaps + files)


class FarBenchTest(BenchTest):
    def setUp(self):
        need_faults()
        super().setUp()

    def check_case(self, report, case, metric, systems=(), percents=(20, 100), on_one_core=()):
        """That case of every system has this metric at its shares, and nothing that was computed is wrong."""
        expected = {"local": [100], "tonari": list(percents), **{system: [20] for system in systems}}
        if on_one_core:
            expected["tonari-core"] = list(on_one_core)
        for system, at in expected.items():
            points = self.points(report, system, case, metric)
            self.assertEqual(list(points), at)
            self.assertTrue(all(point["min"] > 0 for point in points.values()))
        found = {s["system"] for s in report["series"] if (s["case"], s["metric"]) == (case, metric)}
        self.assertEqual(found, set(expected))


class FarMemory(FarBenchTest):
    def test_triads_are_told_by_threads_and_remote(self):
        report, output, _ = self.bench("stream", "--threads", "2,1", "--size", "48M", "--interface", "lo")
        for case in ("threads=1", "threads=2"):
            self.check_case(report, case, "triad")
            self.assertEqual(list(self.points(report, "tonari", case, "wrong")), [20, 100])
        self.check_case(report, "remote", "triad", percents=[20])
        self.assertEqual(list(self.points(report, "tonari", "remote", "wire")), [20])
        self.assertRegex(output, r"speed-up of tonari over one thread in local memory, which reaches \S+ GB/s")
        self.assertIn("all as they should be", output)

    def test_programs_are_told_by_threads(self):
        for name, size in TIMED.items():
            with self.subTest(name):
                report, output, _ = self.bench(name, "--size", size, "--threads", "2")
                self.check_case(report, "threads=2", "time")
                self.assertEqual(list(self.points(report, "tonari", "threads=2", "residual")), [20, 100])
                self.assertIn("all as they should be", output)

    def test_faults_are_told_by_latency_and_rate(self):
        report, output, _ = self.bench("fault", "--size", "32M", "--local", "50")
        for case in ("random-read", "random-write"):
            for metric in ("latency", "rate"):
                self.check_case(report, case, metric, percents=[50], on_one_core=[50])
        self.assertIn("random-write: latency, us, median / 99 %", output)

    def test_servers_may_be_apart(self):
        report, _, _ = self.bench(
            "stream", "--cases", "remote", "--local", "50", "--size", "32M",
            "--apart", "network", "--network", "tcp", "--servers", "2",
        )  # fmt: skip
        command = next(c for c in report["parameters"]["commands"] if " far " in c)
        self.assertIn("--servers 2 --apart network --network tcp --", command)

    def test_wrong_options_are_refused(self):
        self.assertIn("a multiple of 16", self.refused("matmul", "--size", "1000"))
        self.assertIn("an even number", self.refused("fft3d", "--size", "129"))
        self.assertIn("it takes from 4 MiB", self.refused("stream", "--size", "64K"))
        self.assertIn("choose among threads,remote", self.refused("stream", "--cases", "near"))
        self.assertIn("--local: it takes numbers from 1 to 100", self.refused("fault", "--local", "0"))
        self.assertIn("it has no far memory", self.refused("stencil", "--rival", "ucx"))
        self.assertIn("can be asked stream, matmul", self.refused("pingpong", "--rival", "swap-zram"))


class Rivals(FarBenchTest):
    def setUp(self):
        if not has_rivals():
            self.skipTest("no root, no zram, or no cgroups of memory here")
        super().setUp()
        self.before = made_for_rivals()

    def made(self):
        return made_for_rivals() - self.before

    def test_are_asked_in_as_much_memory(self):
        report, output, _ = self.bench("stream", "--size", "48M", "--rival", ",".join(RIVALS))
        self.check_case(report, "threads=1", "triad", RIVALS)
        self.check_case(report, "remote", "triad", RIVALS, percents=[20])
        self.assertIn("all as they should be", output)
        self.assertEqual(self.made(), set())

    def test_leave_nothing_behind_when_stopped(self):
        for rival in RIVALS:
            with self.subTest(rival):
                bench = self.start(
                    "bench", "stream", "--size", "256M", "--local", "20", "--threads", "1", "--rival", rival,
                    "--rivals-only",
                )  # fmt: skip
                eventually(self.made, "the rival is being asked")

                bench.signal(signal.SIGINT)

                self.assertEqual(bench.end()[0], 128 + signal.SIGINT)
                self.assertEqual(self.made(), set())


if __name__ == "__main__":
    unittest.main()
