"""`tonari bench himeno`, in quick form."""

import unittest

from harness.steps import StepsTest

SHARED = ["share", "share-apart", "share-apart-unnamed", "guarded"]


class Himeno(StepsTest):
    question = "himeno"

    def check_gosa(self, report):
        """Positive, and below what the first steps have."""
        for series in report["series"]:
            if series["metric"] == "gosa":
                for point in series["points"]:
                    self.assertTrue(0 < point["max"] < 0.01, point)

    def test_himeno_is_right_on_one_to_three_ranks(self):
        cases = ["message", *SHARED]
        report, _ = self.ask(cases=cases, ranks=[1, 2, 3])
        self.check_gosa(report)
        for case in cases:
            self.assertEqual(list(self.points(report, "tonari", case, "gosa")), [1, 2, 3])

    def test_openmp_threads_compute_the_same_results(self):
        report = self.ask_threads()
        self.check_gosa(report)

    def test_himeno_accepts_the_sizes_of_the_original_benchmark(self):
        report, _ = self.ask("--size", "S", cases=["message", "share"], ranks=[2])
        self.assertEqual(report["parameters"]["size"], "S")

    def test_rivals_compute_the_same_results(self):
        self.check_rivals()


if __name__ == "__main__":
    unittest.main()
