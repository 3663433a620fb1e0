"""`tonari bench fault`, in quick form."""

import unittest

from harness.far_bench import FarBenchTest


class Fault(FarBenchTest):
    def test_latency_and_rate_of_faults_are_measured(self):
        report, output, _ = self.bench("fault", "--size", "32M", "--local", "50")
        for case in ("random-read", "random-write"):
            for metric in ("latency", "rate"):
                self.check_case(report, case, metric, percents=[50], on_one_core=[50])
        self.assertIn("random-write: latency, us, median / 99 %", output)
        self.assertIn("--quick: this run checks that the programs work", output)

    def test_a_local_share_of_zero_is_refused(self):
        self.assertIn("--local: it takes numbers from 1 to 100", self.refused("fault", "--local", "0"))


if __name__ == "__main__":
    unittest.main()
