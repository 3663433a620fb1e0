"""`tonari bench matmul`, in quick form."""

import unittest

from harness.far_bench import FarBenchTest


class Matmul(FarBenchTest):
    def test_measures_times_by_threads(self):
        self.check_time("matmul", "512")

    def test_refuses_a_size_that_blocks_do_not_divide(self):
        self.assertIn("a multiple of 16", self.refused("matmul", "--size", "1000"))


if __name__ == "__main__":
    unittest.main()
