"""`tonari bench atomics`, in quick form."""

import shutil
import unittest

from harness.one_sided import OneSidedTest


class Atomics(OneSidedTest):
    def test_atomic_operations_are_measured_in_both_kinds_of_memory(self):
        report, output, _ = self.bench("atomics")
        cases = [f"{operation} {memory} {owner}" for memory in ("ours", "own") for owner in ("waiting", "computing")
                 for operation in ("fetch-add", "compare-and-swap")]
        self.assertEqual(self.cases(report, "tonari", "latency"), cases)
        for case in cases:
            self.check_positive(self.points(report, "tonari", case, "latency"), [8])
        self.assert_table(output, "compare-and-swap own computing", "latency, us, median")

    def test_rivals_measure_the_same_cases_as_tonari(self):
        for mpi, systems in self.check_rivals("atomics"):
            self.assertEqual(mpi == "openmpi", systems[0].endswith(" no-rdma"))

    def test_ucx_perftest_measures_atomic_operations_without_tonari(self):
        if shutil.which("ucx_perftest") is None:
            self.skipTest("ucx-utils is not installed")
        report, _, _ = self.bench("atomics", "--owner", "waiting", "--rivals-only", "--rival", "ucx")
        self.assertEqual([s["case"] for s in report["series"]],
                         ["fetch-add ours waiting", "compare-and-swap ours waiting"])

    def test_wrong_options_are_refused(self):
        for ranks in ("1", "3"):
            self.assertIn("-n 2", self.refused("atomics", "-n", ranks))
        self.assertIn("choose among fetch-add,compare-and-swap", self.refused("atomics", "--operations", "swap"))

    def test_ucx_is_refused_for_memory_of_the_program(self):
        if shutil.which("ucx_perftest") is None:
            self.skipTest("ucx-utils is not installed")
        self.assertIn("add ours to --memory",
                      self.refused("atomics", "--rivals-only", "--rival", "ucx", "--memory", "own"))


if __name__ == "__main__":
    unittest.main()
