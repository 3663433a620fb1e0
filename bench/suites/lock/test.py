"""`tonari bench lock`, in quick form."""

import unittest

from harness.one_sided import OneSidedTest


class Lock(OneSidedTest):
    def test_locks_are_measured_uncontended_and_in_turn_with_each_number_of_ranks(self):
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
        self.assert_table(output, "handover", "change, us, median")

    def test_a_selected_case_is_measured_alone(self):
        report, _, _ = self.bench("lock", "--ranks", "2,3", "--cases", "uncontended")
        self.assertEqual(self.cases(report, "tonari", "latency"), ["uncontended", "uncontended computing home"])

    def test_rivals_measure_the_same_cases_as_tonari(self):
        for _ in self.check_rivals("lock", "--ranks", "2"):
            pass

    def test_wrong_options_are_refused(self):
        for ranks in ("1", "x", "2,99999"):
            self.assertRegex(self.refused("lock", f"--ranks={ranks}"), r"--ranks: it takes numbers from 2 to \d+")
        self.assertIn("choose among uncontended,handover", self.refused("lock", "--cases", "alone"))


if __name__ == "__main__":
    unittest.main()
