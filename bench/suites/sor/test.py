"""`tonari bench sor`, in quick form."""

import unittest

from harness.steps import StepsTest

CASES = ["message", "share", "share-apart", "share-apart-unnamed", "share-apart-rows", "guarded"]


class Sor(StepsTest):
    question = "sor"

    def test_sor_is_right_on_one_to_three_ranks(self):
        self.ask("--size", "25", cases=CASES, ranks=[1, 2, 3])

    def test_sor_is_right_when_each_rank_has_one_column(self):
        self.ask("--size", "2", cases=CASES, ranks=[2])

    def test_openmp_threads_compute_the_same_results(self):
        self.ask_threads()

    def test_rivals_compute_the_same_results(self):
        self.check_rivals()


if __name__ == "__main__":
    unittest.main()
