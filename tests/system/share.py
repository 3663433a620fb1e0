"""Shared arrays of ranks that are processes: addresses, deaths, misuse."""

import os
import signal
import unittest

from harness.jobs import PROGRAMS, JobTest, asan_options, has_sanitizer

PROGRAM = os.path.join(PROGRAMS, "shared_array")
WAYS = ([], ["--apart", "memory"], ["--apart", "network", "--network", "tcp"])


class Share(JobTest):
    def run_phase(self, phase, way=(), ranks=3, **settings):
        return self.run_job("run", "-n", ranks, *way, PROGRAM, phase, env=self.environment(**settings))

    def run_limited(self, way, phase):
        """Runs a phase on two ranks that may have less than 4 GiB of addresses."""
        limited = f'ulimit -v 4000000; exec "$0" {phase}'
        return self.run_job("run", "-n", 2, *way, "sh", "-c", limited, PROGRAM, env=self.environment())

    def test_pointers_into_a_shared_array_are_valid_on_all_ranks(self):
        for way in WAYS:
            with self.subTest(way=way):
                status, output, error = self.run_phase("pointers", way)
                self.assertEqual((status, error), (0, ""))
                self.assertEqual(sorted(output.splitlines()), [f"rank {rank} found 300" for rank in range(3)])

    def test_a_death_ends_a_job_with_a_shared_array_with_one_line(self):
        for way in WAYS:
            with self.subTest(way=way):
                status, _, error = self.run_phase("death", way)
                self.assertEqual(status, 128 + signal.SIGKILL)
                self.assertRegex(error, r"^tonari: rank 1 \(pid \d+, host \S+\) was killed by signal 9 \(Killed\); "
                                        r"stopping the other 2 ranks\n$")

    def test_touching_pages_lost_with_a_dead_rank_raises_a_signal_and_is_explained(self):
        for way in WAYS[1:]:
            with self.subTest(way=way):
                status, output, error = self.run_phase("lost", way)
                self.assertNotEqual(status, 0)
                # The first rank to touch a lost page ends the job, perhaps before the other one has printed.
                self.assertRegex(output, "rank [02]: barrier peer_gone")
                self.assertNotIn("found", output)
                self.assertRegex(error, r"pages of a shared array are lost with rank 1, their home: "
                                        r"touching them raises SIGBUS")

    def test_touching_pages_that_an_exception_destroyed_at_their_home_raises_a_signal_and_is_explained(self):
        for way in WAYS[1:]:
            with self.subTest(way=way):
                # The signal itself, not what AddressSanitizer makes of it.
                settings = {"ASAN_OPTIONS": asan_options("handle_sigbus=0")}
                status, output, error = self.run_phase("thrown", way, ranks=2, **settings)
                self.assertEqual((status, output), (128 + signal.SIGBUS, "rank 1: release peer_gone\n"))
                self.assertIn("of a shared array are lost since rank 0, their home, has destroyed it", error)

    def test_touching_pages_lost_with_a_dead_rank_raises_a_signal_on_an_older_kernel(self):
        status, output, error = self.run_phase("lost", WAYS[1], TONARI_NEWEST_KERNEL="off")
        self.assertEqual(status, 128 + signal.SIGKILL)
        self.assertRegex(output, "rank [02]: barrier peer_gone")
        self.assertNotIn("found", output)

    def test_a_shared_array_larger_than_the_address_range_is_refused_with_a_remedy(self):
        for way in WAYS:
            with self.subTest(way=way):
                status, _, error = self.run_phase("large", way, TONARI_SHARE_BYTES="64M")
                self.assertEqual(status, 1)
                self.assertRegex(error, r"1\.0 GiB of shared memory were asked for, and of the 64 MiB of addresses .* "
                                        r"set TONARI_SHARE_BYTES higher")

    def test_an_address_limit_too_low_for_shared_memory_is_named(self):
        if has_sanitizer(PROGRAM):
            self.skipTest("sanitizers need more addresses")
        for way in WAYS[:2]:
            with self.subTest(way=way):
                status, _, error = self.run_limited(way, "pointers")
                self.assertEqual(status, 1)
                why = (r"shared memory: it keeps 1\.0 TiB of addresses .* raise ulimit -v \(here: 3\.8 GiB\), "
                       r"or set TONARI_SHARE_BYTES to the bytes that the arrays need")
                self.assertRegex(error, why)
                status, output, error = self.run_limited(way, "barrier")
                self.assertEqual((status, output), (0, 2 * "barrier: no_memory\n"))
                self.assertRegex(error, why)

    def test_waiting_for_a_flag_of_ranks_that_have_left_returns_peer_gone(self):
        for way in WAYS:
            with self.subTest(way=way):
                status, output, error = self.run_phase("alone", way)
                self.assertEqual((status, output, error), (0, "rank 0: wait peer_gone\n", ""))

    def test_a_forked_child_unwinds_and_leaves_the_parents_memory_alone(self):
        for way in WAYS:
            with self.subTest(way=way):
                # The child keeps its parent's memory, which is no leak.
                status, output, error = self.run_phase("fork", way, ASAN_OPTIONS=asan_options("detect_leaks=0"))
                self.assertEqual((status, error), (0, ""))
                self.assertEqual(sorted(output.splitlines()), [f"rank {rank} sees 3" for rank in range(3)])

    def test_a_rank_that_leaves_by_an_exception_does_not_wait_for_the_others(self):
        for way in WAYS:
            with self.subTest(way=way):
                status, _, error = self.run_phase("after", way)
                self.assertNotEqual(status, 0)
                self.assertIn("rank 1 had enough", error)


if __name__ == "__main__":
    unittest.main()
