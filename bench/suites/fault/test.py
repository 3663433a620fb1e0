"""`tonari bench fault`, in quick form."""

import unittest

from harness.far_bench import FarBenchTest


class Fault(FarBenchTest):
    def test_measures_latency_and_rate(self):
        report, output, _ = self.bench("fault", "--size", "32M", "--local", "50")
        for case in ("random-read", "random-write"):
            for metric in ("latency", "rate"):
                self.check_case(report, case, metric, percents=[50], on_one_core=[50])
        self.assertIn("random-write: latency, us, median / 99 %", output)

    def test_refuses_a_share_of_nothing(self):
        self.assertIn("--local: it takes numbers from 1 to 100", self.refused("fault", "--local", "0"))


if __name__ == "__main__":
    unittest.main()
