"""`tonari bench stencil`, in quick form."""

import unittest

from harness.far_bench import FarBenchTest


class Stencil(FarBenchTest):
    def test_the_stencil_with_two_threads_is_timed_and_right(self):
        self.check_time("stencil", "640")

    def test_ucx_is_refused_because_it_has_no_far_memory(self):
        self.assertIn("it has no far memory", self.refused("stencil", "--rival", "ucx"))


if __name__ == "__main__":
    unittest.main()
