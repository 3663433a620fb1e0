"""`tonari bench datatypes`, in quick form."""

import unittest

from harness.bench import BenchTest, has_rival

SHAPES = ["column", "face", "structs"]
CASES = [case for shape in SHAPES for case in (shape, f"{shape} by-hand")]


class Datatypes(BenchTest):
    def check(self, report, system, sizes):
        self.assertEqual(self.cases(report, system, "latency"), CASES)
        self.assertEqual(self.cases(report, system, "to by-hand"), SHAPES)
        for case in CASES:
            points = self.points(report, system, case, "latency")
            self.assertEqual(list(points), sizes)
            self.assertTrue(all(point["min"] > 0 for point in points.values()))
        for case in SHAPES:
            by_type, by_hand, ratio = (self.points(report, system, *name) for name in (
                (case, "latency"), (f"{case} by-hand", "latency"), (case, "to by-hand")))
            for size in sizes:
                self.assertAlmostEqual(ratio[size]["median"], by_type[size]["median"] / by_hand[size]["median"])

    def test_every_shape_is_measured_by_its_type_and_by_hand(self):
        if not has_rival("tonari-mpi", "datatypes"):
            self.skipTest("the MPI front is not built")
        report, output, _ = self.bench("datatypes", "--sizes", "64,2K,1M")
        self.check(report, "tonari-mpi", [64, 2048, 1 << 20])
        self.assert_table(output, "structs by-hand", "latency, us, median")
        self.assert_table(output, "face", "to by-hand, median")

    def test_hosts_are_measured_too(self):
        if not has_rival("tonari-mpi", "datatypes"):
            self.skipTest("the MPI front is not built")
        report, _, _ = self.bench("datatypes", "--sizes", "128,64K", "--apart", "network", "--network", "tcp")
        self.check(report, "tonari-mpi", [128, 64 << 10])

    def test_rivals_measure_the_same_cases(self):
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, "datatypes"):
                continue
            with self.subTest(mpi=mpi):
                report, _, _ = self.bench("datatypes", "--sizes", "1K", "--rivals-only", "--rival", f"{mpi}-default")
                [system] = {series["system"] for series in report["series"]}
                self.check(report, system, [1024])

    def test_wrong_options_are_refused(self):
        self.assertIn("-n 2", self.refused("datatypes", "-n", "3"))
        for size in ("100", "32", "32M"):
            self.assertIn("is no power of two from 64 to 16M", self.refused("datatypes", "--sizes", size))
        self.assertIn("choose among column,face,structs", self.refused("datatypes", "--cases", "diagonal"))


if __name__ == "__main__":
    unittest.main()
