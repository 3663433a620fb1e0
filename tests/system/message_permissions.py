"""Messages and collectives while the kernel begins to refuse direct copies between ranks."""

import os
import unittest

from harness.jobs import PROGRAMS, JobTest, seeds

NOBODY = 65534


class Permissions(JobTest):
    def ways(self):
        """Returns how a rank can lose the permission, and sets the user who starts the ranks."""
        yield "dumpable", NOBODY if os.geteuid() == 0 else None  # root may read all memory
        if os.geteuid() == 0:
            yield "user", None

    def run_collectives(self, when):
        program = os.path.join(PROGRAMS, "collective_permissions")
        for how, self.user in self.ways():
            for ranks, who in ((2, 0), (2, 1), (2, "all"), (3, 0), (3, 1), (3, 2), (3, "all"), (5, 3)):
                for seed in seeds(1):
                    with self.subTest(how=how, ranks=ranks, who=who, seed=seed):
                        ended, output, error = self.run_job(
                            "run", "-n", ranks, program, how, seed, who, when
                        )
                        self.assertEqual((ended, error), (0, ""))
                        self.assertEqual(output.count("did it"), ranks)

    def test_collectives_after_it(self):
        self.run_collectives("between")

    def test_collectives_meanwhile(self):
        self.run_collectives("meanwhile")

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
