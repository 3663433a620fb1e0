"""`tonari bench stencil`, in quick form."""

import unittest

from harness.far_bench import FarBenchTest


class Stencil(FarBenchTest):
    def test_measures_times_by_threads(self):
        self.check_time("stencil", "640")

    def test_refuses_ucx(self):
        self.assertIn("it has no far memory", self.refused("stencil", "--rival", "ucx"))


if __name__ == "__main__":
    unittest.main()
