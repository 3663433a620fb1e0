"""Messages and one-sided accesses to and from shared memory that is not here, or that other ranks copy meanwhile."""

import os
import unittest

from harness.far import NOBODY
from harness.jobs import PROGRAMS, JobTest

PROGRAM = os.path.join(PROGRAMS, "shared_messages")
WAYS = ([], ["--apart", "memory"], ["--apart", "network", "--network", "tcp"])


class Messages(JobTest):
    def run_phase(self, phase, way, **settings):
        return self.run_job("run", "-n", 2, *way, PROGRAM, phase, env=self.environment(**settings))

    def expect_all_right(self, phase, **settings):
        for way in WAYS:
            with self.subTest(way=way):
                status, output, error = self.run_phase(phase, way, **settings)
                self.assertEqual((status, error), (0, ""))
                self.assertEqual(sorted(output.splitlines()), [f"rank {rank}: all is right" for rank in range(2)])

    def test_data_received_in_place_counts_as_written(self):
        self.expect_all_right("received")

    def test_absent_pages_are_sent_and_received_in_every_way(self):
        self.expect_all_right("absent")

    def test_absent_pages_are_sent_and_received_without_direct_copies(self):
        self.expect_all_right("absent", TONARI_DIRECT_COPIES="off")

    def test_a_window_over_shared_memory_that_has_copies_is_refused(self):
        for way in WAYS[1:]:
            with self.subTest(way=way):
                status, _, error = self.run_phase("window", way)
                self.assertEqual(status, 1)
                self.assertIn("making a window: its memory is a shared array or heap: ranks have copies of it", error)


class MessagesOfAnOrdinaryUser(Messages):
    user = NOBODY

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        super().setUp()


if __name__ == "__main__":
    unittest.main()
