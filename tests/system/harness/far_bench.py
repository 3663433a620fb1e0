"""Common parts of the tests of benchmarks of far memory."""

import glob
import os

from harness.bench import BenchTest
from harness.far import need_faults


def has_rivals():
    """Whether this machine lets the tests limit memory and swap."""
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
        """Checks that the case has this metric for every system, at its shares."""
        expected = {"local": [100], "tonari": list(percents), **{system: [20] for system in systems}}
        if on_one_core:
            expected["tonari-core"] = list(on_one_core)
        for system, at in expected.items():
            points = self.points(report, system, case, metric)
            self.assertEqual(list(points), at)
            self.assertTrue(all(point["min"] > 0 for point in points.values()))
        found = {s["system"] for s in report["series"] if (s["case"], s["metric"]) == (case, metric)}
        self.assertEqual(found, set(expected))

    def check_time(self, name, size):
        """Checks the time and the residual of a program that computes once, with two threads."""
        report, output, _ = self.bench(name, "--size", size, "--threads", "2")
        self.check_case(report, "threads=2", "time")
        self.assertEqual(list(self.points(report, "tonari", "threads=2", "residual")), [20, 100])
        self.assertIn("all as they should be", output)
