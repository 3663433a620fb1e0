"""Common parts of the tests of programs that repeat a step (jacobi, ...)."""

from harness.bench import BenchTest, has_rival


class StepsTest(BenchTest):
    question = ""

    def check(self, report, output, cases, ranks):
        """Each case was measured with every number of ranks, and was right."""
        for case in cases:
            system = "openmp" if case == "openmp" else "tonari"
            rates = self.points(report, system, case, "rate")
            self.assertEqual(list(rates), ranks)
            self.assertTrue(all(point["min"] > 0 for point in rates.values()))
            wrong = self.points(report, system, case, "wrong")
            self.assertEqual([point["max"] for point in wrong.values()], [0] * len(ranks))
        self.assertRegex(output, r"(?m)^results of \d+ runs, compared with one rank: the same$")

    def ask(self, *arguments, cases, ranks):
        report, output, _ = self.bench(
            self.question, "--ranks", ",".join(map(str, ranks)), "--cases", ",".join(cases), *arguments
        )
        self.check(report, output, cases, ranks)
        return report, output

    def ask_threads(self, *arguments):
        """The same for openmp on one and two threads. Skips the test if CMake has not found OpenMP."""
        report, output, _ = self.bench(self.question, "--ranks", "1,2", "--cases", "openmp", *arguments)
        if not report["series"]:
            self.skipTest("the worker was built without OpenMP")
        self.check(report, output, ["openmp"], [1, 2])
        return report

    def check_rivals(self, *arguments):
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, self.question):
                continue
            with self.subTest(mpi=mpi):
                report, _ = self.ask(*arguments, "--rival", f"{mpi}-default", cases=["message"], ranks=[2])
                systems = {series["system"] for series in report["series"]}
                self.assertEqual(len(systems), 2)
                wrong = [series["points"][0]["max"] for series in report["series"] if series["metric"] == "wrong"]
                self.assertEqual(wrong, [0, 0])
