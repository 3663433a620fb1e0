"""`tonari bench contention`, in quick form."""

import unittest

from harness.bench import BenchTest, has_rival


class Contention(BenchTest):
    def check(self, report, system, ranks):
        for way, senders in (("pairs", ranks // 2), ("incast", ranks - 1)):
            for size in (512, 65536):
                points = self.points(report, system, f"{way} {size} B", "rate")
                self.assertEqual(list(points), list(range(1, senders + 1)))
                self.assertTrue(all(point["min"] > 0 for point in points.values()))
                points = self.points(report, system, f"{way} {size} B", "retransmitted")
                self.assertTrue(all(point["min"] >= 0 for point in points.values()))

    def test_contention_is_measured_with_each_number_of_senders(self):
        for apart in ([], ["--apart", "network", "--network", "tcp"]):
            report, output, _ = self.bench("contention", "-n", "4", *apart, "--sizes", "512,64K")
            self.check(report, "tonari", 4)
            self.assert_table(output, "incast 65536 B", "rate, GB/s, median")

    def test_rivals_measure_the_same_cases_as_tonari(self):
        for mpi in ("openmpi", "mpich"):
            if has_rival(mpi, "contention"):
                report, _, _ = self.bench("contention", "-n", "2", "--sizes", "512,64K", "--rival", f"{mpi}-default")
                for system in {series["system"] for series in report["series"]}:
                    self.check(report, system, 2)


class Refusals(BenchTest):
    def test_a_single_rank_is_refused(self):
        self.assertIn("contention needs two ranks or more: -n 2", self.refused("contention", "-n", "1"))


if __name__ == "__main__":
    unittest.main()
