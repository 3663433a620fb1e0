"""`tonari bench stream`, in quick form."""

import signal
import unittest

from harness.far_bench import FarBenchTest, has_rivals, made_for_rivals
from harness.jobs import eventually

RIVALS = ["swap-zram", "swap-file", "mmap"]


class Stream(FarBenchTest):
    def test_triads_are_measured_with_each_number_of_threads_and_remotely(self):
        report, output, _ = self.bench("stream", "--threads", "2,1", "--size", "48M", "--interface", "lo")
        for case in ("threads=1", "threads=2"):
            self.check_case(report, case, "triad")
            self.assertEqual(list(self.points(report, "tonari", case, "wrong")), [20, 100])
        self.check_case(report, "remote", "triad", percents=[20])
        self.assertEqual(list(self.points(report, "tonari", "remote", "wire")), [20])
        self.assertRegex(output, r"speed-up of tonari over one thread in local memory, which reaches \S+ GB/s")
        self.assertIn("all as they should be", output)

    def test_options_for_servers_are_passed_on_to_tonari_far(self):
        report, _, _ = self.bench(
            "stream", "--cases", "remote", "--local", "50", "--size", "32M",
            "--apart", "network", "--network", "tcp", "--servers", "2", "--memory", "64M", "--faults", "keeper",
        )  # fmt: skip
        command = next(c for c in report["parameters"]["commands"] if " far " in c)
        self.assertIn("--servers 2 --memory 67108864 --faults keeper --apart network --network tcp --", command)

    def test_a_rival_that_cannot_be_set_up_is_left_out_with_the_reason(self):
        report, _, error = self.bench(
            "stream", "--cases", "threads", "--size", "8M", "--local", "20", "--rival", "swap-file", "--folder",
            "/dev/shm",
        )  # fmt: skip
        self.assertRegex(error, "without --rival swap-file: (cannot swap to .*--folder says where|it takes root|no cgr)")
        self.check_case(report, "threads=1", "triad", percents=[20])

    def test_rivals_only_without_a_rival_left_is_an_error(self):
        error = self.run_job(
            "bench", "stream", "--quick", "--rivals-only", "--rival", "swap-file", "--folder", "/dev/shm"
        )  # fmt: skip
        self.assertEqual(error[:2], (2, ""))
        self.assertIn("none of the rivals swap-file can be measured here", error[2])

    def test_wrong_options_are_refused(self):
        self.assertIn("it takes from 4 MiB", self.refused("stream", "--size", "64K"))
        self.assertIn("choose among threads,remote", self.refused("stream", "--cases", "near"))


class Rivals(FarBenchTest):
    def setUp(self):
        if not has_rivals():
            self.skipTest("no root, no zram, or no cgroups of memory here")
        super().setUp()
        self.before = made_for_rivals()

    def made(self):
        return made_for_rivals() - self.before

    def test_rivals_measure_the_same_cases_and_leave_nothing_behind(self):
        report, output, _ = self.bench("stream", "--size", "48M", "--rival", ",".join(RIVALS))
        self.check_case(report, "threads=1", "triad", RIVALS)
        self.check_case(report, "remote", "triad", RIVALS, percents=[20])
        self.assertIn("all as they should be", output)
        self.assertEqual(self.made(), set())

    def test_stopped_rivals_leave_nothing_behind(self):
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
