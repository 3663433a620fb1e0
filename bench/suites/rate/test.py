"""`tonari bench rate`, in quick form."""

import os
import shutil
import unittest

from harness.bench import BenchTest, has_rival
from harness.jobs import BIN

CASE = "one communicator"


class Rate(BenchTest):
    def test_the_rate_is_measured_with_each_number_of_threads(self):
        report, output, _ = self.bench("rate", "--threads", "3,1,2")
        points = self.points(report, "tonari", CASE, "rate")
        self.assertEqual(list(points), [1, 2, 3])
        self.assertTrue(all(point["min"] > 0 for point in points.values()))
        self.assert_table(output, CASE, "rate, M/s, median")

    def test_only_mpi_with_thread_multiple_is_measured_with_several_threads(self):
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, "rate"):
                continue
            with self.subTest(mpi=mpi):
                report, output, _ = self.bench("rate", "--threads", "1,2", "--rival", mpi)
                asked = {s["system"].split()[-1]: [p["x"] for p in s["points"]] for s in report["series"]}
                self.assertEqual(asked.pop("tonari"), [1, 2])
                self.assertEqual(asked.pop("thread-multiple"), [1, 2])
                self.assertEqual(list(asked.values()), [[1]])
                self.assertIn("vs best", output)

    def test_tonari_s_own_mpi_is_measured_with_several_threads(self):
        if not has_rival("tonari-mpi", "rate"):
            self.skipTest("the MPI front is not built")
        report, _, _ = self.bench("rate", "--threads", "1,2", "--rivals-only", "--rival", "tonari-mpi")
        self.assertEqual(list(self.points(report, "tonari-mpi", CASE, "rate")), [1, 2])

    def test_ucx_perftest_measures_the_rate_without_tonari(self):
        if shutil.which("ucx_perftest") is None:
            self.skipTest("ucx-utils is not installed")
        report, _, _ = self.bench("rate", "--threads", "1,2", "--rivals-only", "--rival", "ucx")
        [series] = report["series"]
        self.assertRegex(series["system"], r"^ucx_perftest-\d+\.\d+\.\d+$")
        points = self.points(report, series["system"], CASE, "rate")
        self.assertEqual(list(points), [1])
        self.assertGreater(points[1]["min"], 0)


class Refusal(BenchTest):
    def test_wrong_numbers_of_threads_and_ranks_are_refused(self):
        for threads in ("0", "65", "x", "1,,2"):
            self.assertIn("--threads: it takes numbers from 1 to 64", self.refused("rate", "--threads", threads))
        for ranks in ("1", "3"):
            self.assertIn("-n 2", self.refused("rate", "-n", ranks))

    def test_numbers_of_threads_that_no_system_supports_are_refused(self):
        if not has_rival("mpich", "rate"):
            self.skipTest("mpich is not installed")
        self.assertIn("--threads 2,4: no system that was asked for takes more than one; add 1",
                      self.refused("rate", "--rivals-only", "--rival", "mpich-default", "--threads", "2,4"))

    def test_ucx_is_refused_for_benchmarks_that_it_does_not_support(self):
        self.assertIn("--rival ucx: ucx_perftest cannot be asked lu; it knows pingpong, rate, window, atomics",
                      self.refused("lu", "--rival", "ucx"))

    def test_the_package_of_ucx_is_named_when_it_is_missing(self):
        self.assertTrue(os.access(os.path.join(BIN, "..", "libexec", "tonari", "rivals", "ucx", "rate"), os.X_OK))
        status, output, error = self.run_job("bench", "rate", "--rival", "ucx", env=self.environment(PATH=self.folder))
        self.assertEqual((status, output), (2, ""))
        self.assertRegex(error, "--rival ucx: ucx_perftest is not installed; install ucx-utils .`make bench` does.")


if __name__ == "__main__":
    unittest.main()
