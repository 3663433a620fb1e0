"""`tonari bench is`, in quick form."""

import unittest

from harness.steps import StepsTest

CASES = ["message", "share", "share-apart", "share-apart-unnamed"]


class Is(StepsTest):
    question = "is"

    def test_the_integer_sort_is_right_on_one_to_three_ranks(self):
        self.ask(cases=CASES, ranks=[1, 2, 3])

    def test_openmp_threads_sort_with_the_same_results(self):
        self.ask_threads()

    def test_rivals_sort_with_the_same_results(self):
        self.check_rivals()


if __name__ == "__main__":
    unittest.main()
