"""`tonari bench fft3d`, in quick form."""

import unittest

from harness.far_bench import FarBenchTest


class Fft3d(FarBenchTest):
    def test_the_fft_with_two_threads_is_timed_and_right(self):
        self.check_time("fft3d", "96")

    def test_an_odd_size_is_refused(self):
        self.assertIn("an even number", self.refused("fft3d", "--size", "129"))


if __name__ == "__main__":
    unittest.main()
