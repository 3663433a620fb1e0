"""Windows between real processes: pages taken away, rights by mappings, pins, forks, and what is given back."""

import os
import unittest

from harness.jobs import PROGRAMS, JobTest

PROGRAM = os.path.join(PROGRAMS, "window_faults")
IN_PIECES = {"TONARI_DIRECT_COPIES": "off"}


class Windows(JobTest):
    def run_program(self, ranks, test, **settings):
        environment = self.environment(**settings)
        ended, output, error = self.run_job("run", "-n", ranks, PROGRAM, test, env=environment)
        self.assertEqual(ended, 0, error)
        self.assertEqual(error, "")
        if "cannot be tried" in output:
            self.skipTest("sanitizers lock no memory")
        self.assertEqual(sorted(output.splitlines()), [f"rank {rank} did it" for rank in range(ranks)])

    def test_protected_or_unmapped_pages_return_an_error_and_harm_nobody(self):
        self.run_program(2, "pages")

    def test_protected_or_unmapped_pages_return_an_error_and_harm_nobody_in_pieces(self):
        self.run_program(2, "pages", **IN_PIECES)

    def test_a_part_is_mapped_without_rights_that_the_rank_does_not_have(self):
        self.run_program(3, "rights")

    def test_accesses_reach_a_target_that_computes(self):
        self.run_program(3, "computing")

    def test_accesses_in_pieces_reach_a_target_that_computes(self):
        self.run_program(3, "computing", **IN_PIECES)

    def test_pinned_pages_are_locked_as_long_as_a_window_needs_them(self):
        self.run_program(2, "pins")

    def test_all_ranks_are_told_if_a_window_pins_more_than_may_be_locked(self):
        self.run_program(2, "limit")

    def test_all_ranks_are_told_if_one_cannot_map_a_window(self):
        self.run_program(3, "room")

    def test_forked_children_have_their_own_copy_and_disturb_nobody(self):
        self.run_program(2, "forks")

    def test_forked_children_have_their_own_copy_and_disturb_nobody_in_pieces(self):
        self.run_program(2, "forks", **IN_PIECES)

    def test_memory_of_freed_windows_is_given_back(self):
        self.run_program(3, "memory")


if __name__ == "__main__":
    unittest.main()
