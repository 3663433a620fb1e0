"""Messages while the kernel begins to refuse direct copies between two ranks."""

import os
import unittest

from harness.jobs import PROGRAMS, JobTest, seeds

NOBODY = 65534


class Permissions(JobTest):
    def run_program(self, how):
        for seed in seeds(5):
            with self.subTest(seed=seed):
                program = os.path.join(PROGRAMS, "message_permissions")
                ended, output, error = self.run_job("run", "-n", 2, program, how, seed)
                self.assertEqual((ended, error), (0, ""))
                if "never copied directly" in output:
                    self.skipTest("this system allows no direct copies")
                self.assertEqual(output.count("did it"), 2)
                self.assertEqual(output.count("copies directly no longer"), 2)

    def test_a_rank_forbids_that_others_read_its_memory(self):
        self.user = NOBODY if os.geteuid() == 0 else None  # root may read all memory
        self.run_program("dumpable")

    def test_both_ranks_lose_it_and_wait_for_their_sends_first(self):
        program = os.path.join(PROGRAMS, "message_permissions")
        self.user = NOBODY if os.geteuid() == 0 else None
        for seed in seeds(5):
            ended, _, error = self.run_job("run", "-n", 2, program, "dumpable", seed, "both")
            self.assertEqual((ended, error), (0, ""))

    def test_a_rank_changes_its_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root may do that")
        self.run_program("user")


if __name__ == "__main__":
    unittest.main()
