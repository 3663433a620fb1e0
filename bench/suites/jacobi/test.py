"""`tonari bench jacobi`, in quick form."""

import unittest

from harness.steps import StepsTest

SHARED = ["share", "share-apart", "share-apart-unnamed", "share-apart-misplaced", "guarded"]


class Jacobi(StepsTest):
    question = "jacobi"

    def test_jacobi_is_right_on_one_to_three_ranks(self):
        self.ask("--size", "60", cases=["message", *SHARED], ranks=[1, 2, 3])

    def test_jacobi_is_right_when_bands_are_one_row(self):
        self.ask("--size", "2", cases=["message", *SHARED], ranks=[2])

    def test_openmp_threads_compute_the_same_results(self):
        self.ask_threads("--size", "60")

    def test_the_option_misplaced_adds_a_case(self):
        report, output, _ = self.bench("jacobi", "--size", "300", "--ranks", "2", "--cases", "share", "--misplaced")
        self.check(report, output, ["share", "share-apart-misplaced"], [2])
        self.assertRegex(output, r"(?m)^ranks +share +share-apart-misplaced$")

    def test_shared_and_guarded_cases_are_right_over_the_network(self):
        cases = ["share-apart", "share-apart-unnamed", "guarded"]
        self.ask("--size", "60", "--apart", "network", cases=cases, ranks=[2])

    def test_rivals_compute_the_same_results(self):
        self.check_rivals("--size", "60")

    def test_unknown_cases_and_rivals_are_refused(self):
        self.assertIn("choose among message,share", self.refused("jacobi", "--cases", "shared"))
        self.assertIn("ucx", self.refused("jacobi", "--rival", "ucx"))


if __name__ == "__main__":
    unittest.main()
