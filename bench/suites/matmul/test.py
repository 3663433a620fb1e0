"""`tonari bench matmul`, in quick form."""

import unittest

from harness.far_bench import FarBenchTest


class Matmul(FarBenchTest):
    def test_the_matrix_product_with_two_threads_is_timed_and_right(self):
        self.check_time("matmul", "512")

    def test_a_size_that_blocks_do_not_divide_is_refused(self):
        self.assertIn("a multiple of 16", self.refused("matmul", "--size", "1000"))


if __name__ == "__main__":
    unittest.main()
