"""`tonari bench alltoall`, in quick form."""

import unittest

from harness.collectives import CollectiveTest


class Alltoall(CollectiveTest):
    question = "alltoall"

    def test_the_all_to_all_is_measured_with_each_number_of_ranks_at_every_size(self):
        report, output, _ = self.bench("alltoall", "--ranks", "2,3", "--sizes", "1,1K,100K")
        self.assertEqual(self.cases(report, "tonari", "latency"), ["bytes 1", "bytes 1024", "bytes 102400"])
        for case in ("bytes 1", "bytes 1024", "bytes 102400"):
            self.check_positive(self.points(report, "tonari", case, "latency"), [2, 3])
        self.assert_table(output, "bytes 1024", "latency, us, median")

    def test_rivals_measure_the_same_cases_as_tonari(self):
        self.check_rivals("--sizes", "8,4K")

    def test_wrong_numbers_of_ranks_are_refused(self):
        self.check_refuses_wrong_ranks()


if __name__ == "__main__":
    unittest.main()
