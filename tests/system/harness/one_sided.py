"""Common parts of the tests of one-sided operations."""

from harness.bench import BenchTest, has_rival

MPIS = ("openmpi", "mpich")


class OneSidedTest(BenchTest):
    def check_positive(self, points, x):
        self.assertEqual(list(points), x)
        self.assertTrue(all(point["min"] > 0 for point in points.values()))

    def answers(self, report, system):
        """Its series, without the metric of descriptors, which only tonari has."""
        return [(s["case"], s["metric"], [p["x"] for p in s["points"]]) for s in report["series"]
                if s["system"] == system and s["metric"] != "hidden"]

    def check_rivals(self, question, *arguments, only_ours=()):
        """Checks that each MPI has every series of tonari, except cases that contain a word of `only_ours`."""
        for mpi in MPIS:
            if not has_rival(mpi, question):
                continue
            with self.subTest(mpi=mpi):
                report, output, _ = self.bench(question, *arguments, "--rival", f"{mpi}-default")
                systems = dict.fromkeys(s["system"] for s in report["series"] if s["system"].startswith(mpi))
                self.assertGreater(len(systems), 0)
                ours = [answer for answer in self.answers(report, "tonari")
                        if not set(only_ours) & set(answer[0].split())]
                for system in systems:
                    self.assertEqual(self.answers(report, system), ours)
                self.assertIn("vs best", output)
                yield mpi, list(systems)
