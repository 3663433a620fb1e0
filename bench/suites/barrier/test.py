"""`tonari bench barrier`, in quick form."""

import unittest

from harness.collectives import CollectiveTest


class Barrier(CollectiveTest):
    question = "barrier"

    def test_the_barrier_is_measured_with_each_number_of_ranks(self):
        report, output, _ = self.bench("barrier", "--ranks", "3,2,5,2")
        self.check_positive(self.points(report, "tonari", "barrier", "latency"), [2, 3, 5])
        self.assertEqual(report["parameters"]["ranks"], [2, 3, 5])
        self.assert_table(output, "barrier", "latency, us, median")

    def test_rivals_measure_the_same_cases_as_tonari(self):
        self.check_rivals()

    def test_wrong_numbers_of_ranks_are_refused(self):
        self.check_refuses_wrong_ranks()


if __name__ == "__main__":
    unittest.main()
