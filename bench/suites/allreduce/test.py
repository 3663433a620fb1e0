"""`tonari bench allreduce`, in quick form."""

import unittest

from harness.collectives import CollectiveTest


class Allreduce(CollectiveTest):
    question = "allreduce"

    def test_the_all_reduce_is_measured_at_every_size_with_each_number_of_ranks(self):
        report, output, _ = self.bench("allreduce", "--ranks", "2,3", "--sizes", "8,24,64K")
        self.assertEqual(self.cases(report, "tonari", "latency"), ["ranks 2", "ranks 3"])
        for case in ("ranks 2", "ranks 3"):
            self.check_positive(self.points(report, "tonari", case, "latency"), [8, 24, 65536])
        self.assert_table(output, "ranks 3", "latency, us, median")

    def test_sizes_that_are_not_whole_doubles_are_refused(self):
        self.assertIn("--sizes: 12 bytes are not a whole number of doubles; choose multiples of 8",
                      self.refused("allreduce", "--sizes", "8,12"))

    def test_rivals_measure_the_same_cases_as_tonari(self):
        self.check_rivals("--sizes", "8,4K")

    def test_wrong_numbers_of_ranks_are_refused(self):
        self.check_refuses_wrong_ranks()


if __name__ == "__main__":
    unittest.main()
