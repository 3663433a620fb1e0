"""Common parts of the tests of collective operations."""

from harness.bench import BenchTest, has_rival


class CollectiveTest(BenchTest):
    question = ""

    def check_positive(self, points, x):
        self.assertEqual(list(points), x)
        self.assertTrue(all(point["min"] > 0 for point in points.values()))

    def check_rivals(self, *arguments):
        """Each MPI has every series that tonari has."""
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, self.question):
                continue
            with self.subTest(mpi=mpi):
                report, output, _ = self.bench(self.question, "-n", "2", *arguments, "--rival", f"{mpi}-default")
                answers = {}
                for series in report["series"]:
                    answer = (series["case"], series["metric"], [point["x"] for point in series["points"]])
                    answers.setdefault(series["system"], []).append(answer)
                self.assertEqual(len(answers), 2)
                ours, theirs = answers.values()
                self.assertEqual(ours, theirs)
                self.assertIn("vs best", output)

    def check_refuses_wrong_ranks(self):
        for ranks in ("1", "0", "x", "-4", "2,99999"):
            with self.subTest(ranks=ranks):
                self.assertRegex(self.refused(self.question, f"--ranks={ranks}"),
                                 r"--ranks: it takes numbers from 2 to \d+ with commas between; '.*' is none")
        self.assertRegex(self.refused(self.question, "--ranks", ","), r"--ranks: it takes numbers from 2 to \d+")
