"""`tonari bench register`, in quick form."""

import unittest

from harness.one_sided import OneSidedTest


class Register(OneSidedTest):
    def test_making_and_freeing_windows_is_measured_together_and_alone(self):
        report, output, _ = self.bench("register", "--sizes", "8,64K")
        cases = ["together", "alone", "together pinned", "alone pinned"]
        for metric in ("make", "free"):
            self.assertEqual(self.cases(report, "tonari", metric), cases)
            for case in cases:
                self.check_positive(self.points(report, "tonari", case, metric), [8, 65536])
        self.assert_table(output, "alone pinned", "make, us, median")

    def test_rivals_measure_the_same_cases_as_tonari(self):
        for _ in self.check_rivals("register", "--sizes", "4K", only_ours=("pinned",)):
            pass

    def test_wrong_options_are_refused(self):
        for ranks in ("1", "3"):
            self.assertIn("-n 2", self.refused("register", "-n", ranks))
        self.assertIn("register needs 8 bytes", self.refused("register", "--sizes", "4,4K"))


if __name__ == "__main__":
    unittest.main()
