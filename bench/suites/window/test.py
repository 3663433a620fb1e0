"""`tonari bench window`, `atomics`, `lock`, `multicast` and `register`, in quick form."""

import shutil
import unittest

from harness.bench import BenchTest, has_rival

MPIS = ("openmpi", "mpich")


class OneSidedTest(BenchTest):
    def check_positive(self, points, x):
        self.assertEqual(list(points), x)
        self.assertTrue(all(point["min"] > 0 for point in points.values()))

    def answers(self, report, system):
        return [(s["case"], s["metric"], [p["x"] for p in s["points"]]) for s in report["series"]
                if s["system"] == system]

    def check_rivals(self, question, *arguments, only_ours=()):
        """Each MPI answers every series that tonari answers, but for those with a word of `only_ours` in their case."""
        for mpi in MPIS:
            if not has_rival(mpi, question):
                continue
            with self.subTest(mpi=mpi):
                report, output, _ = self.bench(question, *arguments, "--rival", f"{mpi}-default")
                systems = dict.fromkeys(s["system"] for s in report["series"] if s["system"].startswith(mpi))
                self.assertGreater(len(systems), 0)
                ours = [answer for answer in self.answers(report, "tonari")
                        if not set(only_ours) & set(answer[0].split())]
                for system in systems:
                    self.assertEqual(self.answers(report, system), ours)
                self.assertIn("vs best", output)
                yield mpi, list(systems)


class Window(OneSidedTest):
    def check_cases(self, buffers, ending, sizes, x):
        report, output, _ = self.bench("window", "--sizes", sizes, "--buffers", buffers)
        cases = [f"{operation} {memory} {owner}{ending}" for memory in ("ours", "own")
                 for owner in ("waiting", "computing") for operation in ("push", "pull")]
        for metric, unit in (("latency", "us"), ("rate", "GB/s")):
            self.assertEqual(self.cases(report, "tonari", metric), cases)
            for case in cases:
                self.check_positive(self.points(report, "tonari", case, metric), x)
                self.assertIn(f"{case}: {metric}, {unit}, median", output)

    def test_all_cases_are_measured_at_every_size(self):
        self.check_cases("warm", "", "1,8,4K-5K+512", [1, 8, 4096, 4608, 5120])

    def test_all_cases_are_measured_out_of_reach_of_the_caches(self):
        self.check_cases("cold", " cold", "8", [8])

    def test_no_operation_waits_for_an_owner_that_computes(self):
        report, _, _ = self.bench("window", "--sizes", "8,64K", "--owner", "computing", "--buffers", "warm")
        for case in self.cases(report, "tonari", "latency"):
            for point in self.points(report, "tonari", case, "latency").values():
                self.assertLess(point["median"], report["parameters"]["computing_us"] / 2)

    def test_bare_copies_are_measured_beside(self):
        report, _, _ = self.bench("window", "--sizes", "8,100K", "--buffers", "warm", "--owner", "waiting")
        for system, memory in (("memcpy", "ours"), ("process-vm", "own")):
            for operation in ("push", "pull"):
                case = f"{operation} {memory} waiting"
                self.check_positive(self.points(report, system, case, "latency"), [8, 102400])
            self.assertEqual(len(self.answers(report, system)), 4)

    def test_what_is_not_asked_for_is_left_out(self):
        report, _, _ = self.bench("window", "--sizes", "8", "--operations", "pull", "--memory", "ours", "--owner",
                                  "waiting", "--buffers", "cold")
        self.assertEqual(self.cases(report, "tonari", "rate"), ["pull ours waiting cold"])
        self.assertEqual({s["system"] for s in report["series"]}, {"tonari", "memcpy"})

    def test_rivals_are_asked_the_same(self):
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

    def test_ucx_measures_by_itself(self):
        if shutil.which("ucx_perftest") is None:
            self.skipTest("ucx-utils is not installed")
        report, _, _ = self.bench("window", "--sizes", "8,1K,64K", "--memory", "ours", "--rivals-only", "--rival", "ucx")
        system = report["series"][0]["system"]
        self.assertRegex(system, r"^ucx_perftest-\d+\.\d+\.\d+$")
        for owner in ("waiting", "computing"):
            for metric in ("latency", "rate"):
                self.check_positive(self.points(report, system, f"push ours {owner}", metric), [8, 65536])


class Atomics(OneSidedTest):
    def test_are_measured_in_both_kinds_of_memory(self):
        report, output, _ = self.bench("atomics")
        cases = [f"{operation} {memory} {owner}" for memory in ("ours", "own") for owner in ("waiting", "computing")
                 for operation in ("fetch-add", "compare-and-swap")]
        self.assertEqual(self.cases(report, "tonari", "latency"), cases)
        for case in cases:
            self.check_positive(self.points(report, "tonari", case, "latency"), [8])
        self.assertIn("compare-and-swap own computing: latency, us, median", output)

    def test_rivals_are_asked_the_same(self):
        for mpi, systems in self.check_rivals("atomics"):
            self.assertEqual(mpi == "openmpi", systems[0].endswith(" no-rdma"))

    def test_ucx_measures_by_itself(self):
        if shutil.which("ucx_perftest") is None:
            self.skipTest("ucx-utils is not installed")
        report, _, _ = self.bench("atomics", "--owner", "waiting", "--rivals-only", "--rival", "ucx")
        self.assertEqual([s["case"] for s in report["series"]],
                         ["fetch-add ours waiting", "compare-and-swap ours waiting"])


class Lock(OneSidedTest):
    def test_is_measured_alone_and_in_turn_with_each_number_of_ranks(self):
        report, output, _ = self.bench("lock", "--ranks", "3,2")
        self.assertEqual(self.cases(report, "tonari", "latency"),
                         ["uncontended", "uncontended computing home", "handover"])
        for case in ("uncontended", "uncontended computing home"):
            self.check_positive(self.points(report, "tonari", case, "latency"), [2])
        for metric in ("latency", "change"):
            self.check_positive(self.points(report, "tonari", "handover", metric), [2, 3])
        fairness = self.points(report, "tonari", "handover", "fairness")
        self.assertEqual(list(fairness), [2, 3])
        for point in fairness.values():  # on a busy machine a rank may get no turn at all
            self.assertTrue(0 <= point["min"] <= point["max"] <= 1, point)
        self.assertIn("handover: change, us, median", output)

    def test_one_case_is_measured_alone(self):
        report, _, _ = self.bench("lock", "--ranks", "2,3", "--cases", "uncontended")
        self.assertEqual(self.cases(report, "tonari", "latency"), ["uncontended", "uncontended computing home"])

    def test_rivals_are_asked_the_same(self):
        for _ in self.check_rivals("lock", "--ranks", "2"):
            pass


class Multicast(OneSidedTest):
    def test_is_measured_beside_a_loop_of_pushes(self):
        report, output, _ = self.bench("multicast", "--ranks", "2,3", "--sizes", "1,4K,100K")
        cases = [f"{way} ranks {ranks}" for ranks in (2, 3) for way in ("multicast", "loop of pushes")]
        self.assertEqual(self.cases(report, "tonari", "latency"), cases)
        for case in cases:
            self.check_positive(self.points(report, "tonari", case, "latency"), [1, 4096, 102400])
        self.assertIn("loop of pushes ranks 3: latency, us, median", output)

    def test_asks_four_ranks_unless_told_otherwise(self):
        report, _, _ = self.bench("multicast", "--sizes", "8")
        self.assertEqual(report["parameters"]["ranks"], [4])

    def test_rivals_are_asked_the_same(self):
        for _ in self.check_rivals("multicast", "--ranks", "2", "--sizes", "8,4K"):
            pass


class Register(OneSidedTest):
    def test_is_measured_together_and_alone(self):
        report, output, _ = self.bench("register", "--sizes", "8,64K")
        cases = ["together", "alone", "together pinned", "alone pinned"]
        for metric in ("make", "free"):
            self.assertEqual(self.cases(report, "tonari", metric), cases)
            for case in cases:
                self.check_positive(self.points(report, "tonari", case, metric), [8, 65536])
        self.assertIn("alone pinned: make, us, median", output)

    def test_rivals_are_asked_the_same(self):
        for _ in self.check_rivals("register", "--sizes", "4K", only_ours=("pinned",)):
            pass


class Refusal(OneSidedTest):
    def test_of_wrong_numbers_of_ranks_says_what_is_right(self):
        for question in ("window", "atomics", "register"):
            for ranks in ("1", "3"):
                self.assertIn("-n 2", self.refused(question, "-n", ranks))
        for question in ("lock", "multicast"):
            for ranks in ("1", "x", "2,99999"):
                self.assertRegex(self.refused(question, f"--ranks={ranks}"), r"--ranks: it takes numbers from 2 to \d+")

    def test_of_wrong_choices_lists_the_right_ones(self):
        for option, known in (("--operations", "push,pull"), ("--memory", "ours,own"),
                              ("--owner", "waiting,computing"), ("--buffers", "warm,cold")):
            self.assertIn(f"choose among {known}", self.refused("window", option, "other"))
        self.assertIn("choose among fetch-add,compare-and-swap", self.refused("atomics", "--operations", "swap"))
        self.assertIn("choose among uncontended,handover", self.refused("lock", "--cases", "alone"))

    def test_of_wrong_sizes_says_what_is_right(self):
        for sizes in ("4K-12K+", "4K-12K+0", "12K-4K+8", "8+8", "1-1M+1", "4K-12K+256x"):
            with self.subTest(sizes=sizes):
                self.assertIn("ranges in steps such as 4K-12K+256", self.refused("window", "--sizes", sizes))
        self.assertIn("register needs 8 bytes", self.refused("register", "--sizes", "4,4K"))

    def test_of_ucx_where_it_has_no_answer(self):
        if shutil.which("ucx_perftest") is None:
            self.skipTest("ucx-utils is not installed")
        self.assertIn("it knows pingpong, rate, window, atomics", self.refused("lock", "--rival", "ucx"))
        self.assertIn("add ours to --memory",
                      self.refused("atomics", "--rivals-only", "--rival", "ucx", "--memory", "own"))


if __name__ == "__main__":
    unittest.main()
