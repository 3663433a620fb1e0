"""A rank dies in the middle of messages, copies and collectives: the other ranks stop, or learn of it and go on."""

import os
import signal
import time
import unittest

from harness.jobs import PROGRAMS, JobTest, eventually, state_of

PROGRAM = os.path.join(PROGRAMS, "message_deaths")
VICTIM = 1
SURVIVORS = (0, 2)
BOUND = 3.0  # a death is known within a second (docs/design.md); processes need time to end on a busy machine


class Deaths(JobTest):
    def start_phase(self, phase, *arguments):
        job = self.start("run", "-n", 3, PROGRAM, phase, *arguments)
        pids = [job.pid_of(rank) for rank in range(3)]
        job.output.wait_for("is ready", 3)
        return job, pids

    def kill_when_others_sleep(self, pids):
        for rank in SURVIVORS:
            eventually(lambda: state_of(pids[rank]) == "S", f"rank {rank} sleeps")
        os.kill(pids[VICTIM], signal.SIGKILL)
        return time.monotonic()

    def check_everybody_stops(self, phase, kill=True):
        job, pids = self.start_phase(phase)
        since = self.kill_when_others_sleep(pids) if kill else time.monotonic()
        status, output, error = job.end()
        self.assertLess(time.monotonic() - since, BOUND if kill else BOUND + 10)
        self.assertEqual(status, 128 + signal.SIGKILL)
        self.assertRegex(error, r"^tonari: rank 1 \(pid \d+, host \S+\) was killed by signal 9 \(Killed\); "
                                r"stopping the other 2 ranks\n$")
        self.assertNotIn("went on", output)

    def check_others_go_on(self, phase, kill=True):
        job, pids = self.start_phase(phase, "live")
        since = self.kill_when_others_sleep(pids) if kill else time.monotonic()
        for rank in SURVIVORS:
            job.output.wait_for(f"rank {rank} saw peer_gone")
        if kill:
            self.assertLess(time.monotonic() - since, BOUND)
        for rank in SURVIVORS:
            job.output.wait_for(f"rank {rank} went on")
        self.assertEqual(job.end()[0], 128 + signal.SIGKILL)


def add(phase, rank, kill=True):
    """Adds the tests of a phase. `rank` describes the rank that dies, as a part of the tests' names."""
    setattr(Deaths, f"test_the_death_of_a_rank_{rank}_stops_all_ranks",
            lambda self: self.check_everybody_stops(phase, kill))
    setattr(Deaths, f"test_the_death_of_a_rank_{rank}_lets_the_others_go_on",
            lambda self: self.check_others_go_on(phase, kill))


add("receive", "that_others_receive_from")
add("anyone", "while_others_receive_from_any_rank")
add("barrier", "while_others_are_in_a_barrier")
add("reduce", "while_others_are_in_an_all_reduce")
add("unclaimed", "that_has_claimed_but_not_published_slots")
add("room", "whose_rings_are_full")
add("copy", "while_its_long_message_is_copied", kill=False)
Deaths.test_messages_that_a_dead_rank_had_sent_are_received = lambda self: self.check_others_go_on("sent", kill=False)
Deaths.test_receiving_a_matched_long_message_of_a_dead_rank_returns_peer_gone = (
    lambda self: self.check_others_go_on("matched", kill=False))

if __name__ == "__main__":
    unittest.main()
