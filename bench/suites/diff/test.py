"""`tonari bench diff`, in quick form."""

import unittest

from harness.bench import BenchTest

CHANGED = [0, 1, 5, 10, 25, 50, 100]


class Diff(BenchTest):
    def test_every_system_is_measured_and_right_in_every_case(self):
        report, output, _ = self.bench("diff")
        systems = {series["system"] for series in report["series"]}
        self.assertLessEqual({"tonari", "tonari-words", "byte-loop", "memcmp"}, systems)
        for system in systems:
            self.assertEqual(self.cases(report, system, "rate"), ["scattered", "runs"])
            for case in ("scattered", "runs"):
                points = self.points(report, system, case, "rate")
                self.assertEqual(list(points), CHANGED)
                self.assertTrue(all(point["min"] > 0 for point in points.values()))
                wrong = self.points(report, system, case, "wrong")
                self.assertEqual({x: point["max"] for x, point in wrong.items()}, dict.fromkeys(CHANGED, 0))
        self.assert_table(output, "scattered", "rate, GB/s, median")
        self.assertIn("all as they should be", output)

    def test_the_bytes_that_a_diff_would_send_are_reported(self):
        report, _, _ = self.bench("diff", "--changed", "100,0,10")
        scattered = self.points(report, "tonari", "scattered", "bytes")
        runs = self.points(report, "tonari", "runs", "bytes")
        for points in (scattered, runs):
            self.assertEqual(list(points), [0, 10, 100])
            self.assertEqual(points[0]["max"], 0)
            self.assertEqual(points[100]["min"], 4096 + 8)
        self.assertGreater(scattered[10]["min"], 410 + 8 * 300)
        self.assertLessEqual(runs[10]["max"], 7 * 64 + 8 * 8)

    def test_diffs_of_cold_pages_are_measured(self):
        report, _, _ = self.bench("diff", "--cases", "runs-cold", "--changed", "5")
        self.assertEqual(list(self.points(report, "tonari", "runs-cold", "rate")), [5])

    def test_wrong_options_are_refused(self):
        self.assertIn("-n 1", self.refused("diff", "-n", "2"))
        self.assertIn("scattered-cold", self.refused("diff", "--cases", "lost"))
        for number in ("101", "-1", "x", "0,,8"):
            self.assertIn("--changed: it takes numbers from 0 to 100", self.refused("diff", "--changed", number))
        self.assertIn("MPI has no twins", self.refused("diff", "--rival", "openmpi"))


if __name__ == "__main__":
    unittest.main()
