"""`tonari bench lu`, in quick form."""

import unittest

from harness.bench import BenchTest, has_rival

MODES = ["blocking", "started-receive", "started"]


class Lu(BenchTest):
    def check(self, report, output, orders):
        for mode in MODES:
            residuals = self.points(report, "tonari", mode, "residual")
            self.assertEqual(list(residuals), orders)
            self.assertTrue(all(0 <= point["max"] < 30 for point in residuals.values()))
            for metric in ("rate", "send", "compute", "wait"):
                self.assertEqual(list(self.points(report, "tonari", mode, metric)), orders)
        self.assertRegex(output, r"(?m)^residual .* LAPACK's bound is 30: passed$")

    def test_lu_is_right_on_one_to_three_ranks(self):
        for ranks in (1, 2, 3):
            with self.subTest(ranks=ranks):
                report, output, _ = self.bench("lu", "-n", ranks, "--sizes", "50,120")
                self.check(report, output, [50, 120])

    def test_lu_is_right_when_blocks_do_not_divide_the_columns(self):
        for block in (1, 7, 64):
            with self.subTest(block=block):
                report, output, _ = self.bench("lu", "-n", 3, "--sizes", "1,2,65", "--block", block)
                self.check(report, output, [1, 2, 65])

    def test_times_are_samples_of_each_rank(self):
        report, _, _ = self.bench("lu", "-n", 2, "--sizes", "60", "--modes", "started")
        factorisations = self.points(report, "tonari", "started", "rate")[60]["n"]
        self.assertEqual(self.points(report, "tonari", "started", "wait")[60]["n"], 2 * factorisations)

    def test_lu_is_measured_over_numbers_of_ranks(self):
        report, _, _ = self.bench("lu", "-n", 3, "--sizes", "60", "--sweep", "ranks", "--modes", "blocking")
        self.assertEqual(list(self.points(report, "tonari", "blocking", "rate")), [1, 2, 3])

    def test_rivals_compute_the_same_results(self):
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, "lu"):
                continue
            with self.subTest(mpi=mpi):
                report, _, _ = self.bench("lu", "--sizes", "60", "--rival", mpi)
                residuals = {series["points"][0]["max"] for series in report["series"]
                             if series["metric"] == "residual"}
                self.assertEqual(len(residuals), 1, "the same sums in the same order")


if __name__ == "__main__":
    unittest.main()
