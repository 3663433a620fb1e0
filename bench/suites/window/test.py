"""`tonari bench window`, in quick form."""

import shutil
import unittest

from harness.bench import has_rival
from harness.one_sided import MPIS, OneSidedTest


class Window(OneSidedTest):
    def check_cases(self, buffers, ending, sizes, x):
        report, output, _ = self.bench("window", "--sizes", sizes, "--buffers", buffers)
        cases = [f"{operation} {memory} {owner}{ending}" for memory in ("ours", "own")
                 for owner in ("waiting", "computing") for operation in ("push", "pull")]
        for metric, unit in (("latency", "us"), ("rate", "GB/s")):
            self.assertEqual(self.cases(report, "tonari", metric), cases)
            for case in cases:
                self.check_positive(self.points(report, "tonari", case, metric), x)
                self.assert_table(output, case, f"{metric}, {unit}, median")

    def test_all_cases_of_windows_are_measured_at_every_size(self):
        self.check_cases("warm", "", "1,8,4K-5K+512", [1, 8, 4096, 4608, 5120])

    def test_all_cases_of_windows_are_measured_with_cold_buffers(self):
        self.check_cases("cold", " cold", "8", [8])

    def test_posted_descriptors_are_measured_while_their_poster_computes(self):
        report, output, _ = self.bench("window", "--sizes", "8,256K", "--buffers", "warm,cold")
        cases = [f"{operation} {memory} waiting" for memory in ("ours", "own") for operation in ("push", "pull")]
        self.assertEqual(self.cases(report, "tonari", "hidden"), cases)
        for case in cases:
            points = self.points(report, "tonari", case, "hidden")
            self.assertEqual(list(points), [8, 262144])
            for point in points.values():
                self.assertGreaterEqual(point["n"], 5)
            self.assert_table(output, case, "hidden, %, median")

    def test_no_operation_waits_for_an_owner_that_computes(self):
        report, _, _ = self.bench("window", "--sizes", "8,64K", "--owner", "computing", "--buffers", "warm")
        for case in self.cases(report, "tonari", "latency"):
            for point in self.points(report, "tonari", case, "latency").values():
                self.assertLess(point["median"], report["parameters"]["computing_us"] / 2)

    def test_bare_copies_are_measured_beside_windows(self):
        report, _, _ = self.bench("window", "--sizes", "8,100K", "--buffers", "warm", "--owner", "waiting")
        for system, memory in (("memcpy", "ours"), ("process-vm", "own")):
            for operation in ("push", "pull"):
                case = f"{operation} {memory} waiting"
                self.check_positive(self.points(report, system, case, "latency"), [8, 102400])
            self.assertEqual(len(self.answers(report, system)), 4)

    def test_unselected_cases_are_left_out(self):
        report, _, _ = self.bench("window", "--sizes", "8", "--operations", "pull", "--memory", "ours", "--owner",
                                  "waiting", "--buffers", "cold")
        self.assertEqual(self.cases(report, "tonari", "rate"), ["pull ours waiting cold"])
        self.assertEqual({s["system"] for s in report["series"]}, {"tonari", "memcpy"})

    def test_rivals_measure_the_same_cases_as_tonari(self):
        for mpi, systems in self.check_rivals("window", "--sizes", "8,8K", "--buffers", "warm"):
            self.assertEqual(len(systems), 2 if mpi == "openmpi" else 1)
            self.assertTrue(mpi != "openmpi" or systems[1] == systems[0] + " no-rdma")

    def test_rivals_between_hosts_copy_nothing_through_shared_memory(self):
        apart = ("--apart", "network", "--network", "tcp", "--sizes", "8", "--owner", "waiting", "--buffers", "warm")
        for mpi in MPIS:
            if not has_rival(mpi, "window"):
                continue
            with self.subTest(mpi=mpi):
                report, _, _ = self.bench("window", *apart, "--rivals-only", "--rival", mpi)
                systems = {s["system"] for s in report["series"] if s["system"].startswith(mpi)}
                self.assertEqual(len(systems), 2, systems)
                for system in systems:
                    for case in ("push ours waiting", "pull ours waiting", "push own waiting", "pull own waiting"):
                        point = self.points(report, system, case, "latency")[8]
                        self.assertGreater(point["min"], 2, f"{system}, {case}: TCP takes longer")

    def test_ucx_perftest_measures_pushes_without_tonari(self):
        if shutil.which("ucx_perftest") is None:
            self.skipTest("ucx-utils is not installed")
        report, _, _ = self.bench("window", "--sizes", "8,1K,64K", "--memory", "ours", "--rivals-only",
                                  "--rival", "ucx")
        system = report["series"][0]["system"]
        self.assertRegex(system, r"^ucx_perftest-\d+\.\d+\.\d+$")
        for owner in ("waiting", "computing"):
            for metric in ("latency", "rate"):
                self.check_positive(self.points(report, system, f"push ours {owner}", metric), [8, 65536])

    def test_wrong_options_are_refused(self):
        for ranks in ("1", "3"):
            self.assertIn("-n 2", self.refused("window", "-n", ranks))
        for option, known in (("--operations", "push,pull"), ("--memory", "ours,own"),
                              ("--owner", "waiting,computing"), ("--buffers", "warm,cold")):
            self.assertIn(f"choose among {known}", self.refused("window", option, "other"))
        for sizes in ("4K-12K+", "4K-12K+0", "12K-4K+8", "8+8", "1-1M+1", "4K-12K+256x"):
            with self.subTest(sizes=sizes):
                self.assertIn("ranges in steps such as 4K-12K+256", self.refused("window", "--sizes", sizes))


if __name__ == "__main__":
    unittest.main()
