"""`tonari bench multicast`, in quick form."""

import unittest

from harness.one_sided import OneSidedTest


class Multicast(OneSidedTest):
    def test_the_multicast_is_measured_beside_a_loop_of_pushes(self):
        report, output, _ = self.bench("multicast", "--ranks", "2,3", "--sizes", "1,4K,100K")
        cases = [f"{way} ranks {ranks}" for ranks in (2, 3) for way in ("multicast", "loop of pushes")]
        self.assertEqual(self.cases(report, "tonari", "latency"), cases)
        for case in cases:
            self.check_positive(self.points(report, "tonari", case, "latency"), [1, 4096, 102400])
        self.assert_table(output, "loop of pushes ranks 3", "latency, us, median")

    def test_the_default_is_four_ranks(self):
        report, _, _ = self.bench("multicast", "--sizes", "8")
        self.assertEqual(report["parameters"]["ranks"], [4])

    def test_rivals_measure_the_same_cases_as_tonari(self):
        for _ in self.check_rivals("multicast", "--ranks", "2", "--sizes", "8,4K"):
            pass

    def test_wrong_numbers_of_ranks_are_refused(self):
        for ranks in ("1", "x", "2,99999"):
            self.assertRegex(self.refused("multicast", f"--ranks={ranks}"), r"--ranks: it takes numbers from 2 to \d+")


if __name__ == "__main__":
    unittest.main()
