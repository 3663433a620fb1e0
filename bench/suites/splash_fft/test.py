"""`tonari bench splash_fft`, in quick form."""

import unittest

from harness.bench import BenchTest, has_rival

WAYS = ["push", "push-256", "push-whole", "pull", "queue", "all-to-all"]


class SplashFft(BenchTest):
    def check(self, report, output, ranks, points):
        """Every way of every size is right, and measured with every number of ranks."""
        for way in WAYS:
            for size in points:
                case = f"{way} points {size}"
                residuals = self.points(report, "tonari", case, "residual")
                self.assertEqual(list(residuals), ranks)
                self.assertTrue(all(0 <= point["max"] < 16 for point in residuals.values()))
                for metric in ("time", "transfers", "compute", "transfer", "wait"):
                    self.assertEqual(list(self.points(report, "tonari", case, metric)), ranks)
        self.assertRegex(output, r"(?m)^residual .* HPC Challenge's bound is 16: passed$")

    def transfers(self, report, case):
        points = self.points(report, "tonari", case, "transfers")
        return [points[ranks]["median"] for ranks in points]

    def test_the_fft_of_4096_points_makes_as_many_transfers_as_in_the_paper(self):
        report, output, _ = self.bench("splash_fft", "--ranks", "1,2,4,8")
        self.check(report, output, [1, 2, 4, 8], [4096])
        for way in ("push", "pull", "queue"):
            self.assertEqual(self.transfers(report, f"{way} points 4096"), [0, 128, 384, 896])
        self.assertEqual(self.transfers(report, "push-256 points 4096"), [0, 256, 384, 896])
        for way in ("push-whole", "all-to-all"):
            self.assertEqual(self.transfers(report, f"{way} points 4096"), [0, 4, 24, 112])
        self.assertRegex(output, r"(?m)^ *2 +tonari +128 +\S+ +\S+$")
        self.assertRegex(output, r"(?m)^ *2 +MLC/Myrinet \(paper\) +128 +3\.00 +12\.78$")
        self.assertRegex(output, r"(?m)^ *8 +MLC-1 \(paper, projected\) +896 +1\.50744 +6\.15$")

    def test_the_fft_is_right_when_the_input_is_dealt(self):
        report, output, _ = self.bench("splash_fft", "--ranks", "1,4", "--input", "dealt")
        self.check(report, output, [1, 4], [4096])
        self.assertEqual(self.transfers(report, "push points 4096"), [0, 3 * 192])

    def test_the_fft_is_right_on_three_ranks_and_at_odd_sizes(self):
        report, output, _ = self.bench("splash_fft", "--ranks", "3", "--sizes", "9,225,3600")
        self.check(report, output, [3], [9, 225, 3600])
        self.assertNotIn("MLC", output)

    def test_phases_are_samples_of_each_rank(self):
        report, _, _ = self.bench("splash_fft", "-n", "2", "--sizes", "64", "--ways", "push")
        batches = self.points(report, "tonari", "push points 64", "time")[2]["n"]
        self.assertEqual(self.points(report, "tonari", "push points 64", "wait")[2]["n"], 2 * batches)

    def test_rivals_compute_the_same_results(self):
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, "splash_fft"):
                continue
            with self.subTest(mpi=mpi):
                report, _, _ = self.bench("splash_fft", "--ranks", "2", "--rival", f"{mpi}-default")
                for metric in ("residual", "transfers"):
                    answers = {}
                    for series in report["series"]:
                        if series["metric"] == metric:
                            answers.setdefault(series["case"], []).append(series["points"][0]["samples"])
                    self.assertEqual(len(answers), len(WAYS))
                    for case, (ours, theirs) in answers.items():
                        self.assertEqual(ours, theirs, f"{case}: {metric}")

    def test_wrong_sizes_and_ways_are_refused(self):
        for sizes, ranks in (("8K", "1"), ("4K", "3"), ("1", "1"), ("64,66", "2"), ("1073741824", "1")):
            with self.subTest(sizes=sizes, ranks=ranks):
                self.assertRegex(self.refused("splash_fft", "--sizes", sizes, "--ranks", ranks),
                                 r"--sizes: \d+ is not the square of a multiple of \d+; choose squares")
        self.assertIn("choose among push,push-256,push-whole", self.refused("splash_fft", "--ways", "shove"))
        self.assertIn("--input: must be copied or dealt", self.refused("splash_fft", "--input", "lost"))


if __name__ == "__main__":
    unittest.main()
