"""`tonari bench behind`, in quick form."""

import unittest

from harness.bench import BenchTest, has_rival


class Behind(BenchTest):
    def check(self, report, system):
        self.assertEqual(self.cases(report, system, "latency"), ["alone", "behind"])
        for case in ("alone", "behind"):
            self.assertGreater(self.points(report, system, case, "latency")[8]["min"], 0)
        for metric in ("stream", "flood"):
            self.assertEqual(self.cases(report, system, metric), ["behind"])
            self.assertGreaterEqual(self.points(report, system, "behind", metric)[8]["min"], 0)

    def test_latency_is_measured_alone_and_behind_other_messages(self):
        report, output, _ = self.bench("behind")
        self.check(report, "tonari")
        self.assertGreater(self.points(report, "tonari", "behind", "flood")[8]["min"], 0)
        self.assert_table(output, "behind", "latency, us, median")

    def test_numbers_of_ranks_other_than_four_are_refused(self):
        for ranks in ("2", "5"):
            self.assertIn("-n 4", self.refused("behind", "-n", ranks))

    def test_rivals_measure_the_same_cases_as_tonari(self):
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, "behind"):
                continue
            with self.subTest(mpi=mpi):
                report, output, _ = self.bench("behind", "--rival", f"{mpi}-default")
                self.check(report, next(s["system"] for s in report["series"] if s["system"].startswith(mpi)))
                self.assertIn("vs best", output)


if __name__ == "__main__":
    unittest.main()
