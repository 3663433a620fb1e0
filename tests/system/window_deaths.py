"""A rank dies while it uses a window or holds a lock: all ranks stop, or the survivors learn of it and go on."""

import os
import signal
import time
import unittest

from harness.jobs import PROGRAMS, JobTest, eventually, state_of

PROGRAM = os.path.join(PROGRAMS, "window_deaths")
VICTIM = 1
SURVIVORS = (0, 2)
BOUND = 3.0  # docs/design.md: known within a second; the rest is for processes to end on a busy machine


class Deaths(JobTest):
    def start_phase(self, phase, sleepers, *arguments, **settings):
        job = self.start("run", "-n", 3, PROGRAM, phase, *arguments, env=self.environment(**settings))
        pids = [job.pid_of(rank) for rank in range(3)]
        job.output.wait_for("is ready", 3)
        for rank in sleepers:
            eventually(lambda: state_of(pids[rank]) == "S", f"rank {rank} sleeps")
        return job, pids

    def kill(self, pids):
        os.kill(pids[VICTIM], signal.SIGKILL)
        return time.monotonic()

    def check_everybody_stops(self, phase, sleepers, kill, **settings):
        job, pids = self.start_phase(phase, sleepers, **settings)
        since = self.kill(pids) if kill else time.monotonic()
        status, output, error = job.end()
        self.assertLess(time.monotonic() - since, BOUND if kill else BOUND + 10)
        self.assertEqual(status, 128 + signal.SIGKILL)
        self.assertRegex(error, r"^tonari: rank 1 \(pid \d+, host \S+\) was killed by signal 9 \(Killed\); "
                                r"stopping the other 2 ranks\n$")
        self.assertNotIn("went on", output)

    def check_others_go_on(self, phase, answers, sleepers, kill, **settings):
        job, pids = self.start_phase(phase, sleepers, "live", **settings)
        since = self.kill(pids) if kill else time.monotonic()
        for rank, answer in zip(SURVIVORS, answers):
            job.output.wait_for(f"rank {rank} saw {answer}$")
        if kill:
            self.assertLess(time.monotonic() - since, BOUND)
        for rank in SURVIVORS:
            job.output.wait_for(f"rank {rank} went on")
        self.assertEqual(job.end()[0], 128 + signal.SIGKILL)


def add(phase, rank, answers=("peer_gone", "peer_gone"), sleepers=SURVIVORS, kill=True, name="", **settings):
    """Adds the tests of a phase. `rank` describes the rank that dies, as a part of the tests' names."""
    def stop(self):
        self.check_everybody_stops(phase, sleepers, kill, **settings)

    def go_on(self):
        self.check_others_go_on(phase, answers, sleepers, kill, **settings)

    setattr(Deaths, f"test_the_death_of_a_rank_{rank}{name}_stops_all_ranks", stop)
    setattr(Deaths, f"test_the_death_of_a_rank_{rank}{name}_lets_the_others_go_on", go_on)


IN_PIECES = {"name": "_in_pieces", "TONARI_DIRECT_COPIES": "off"}
add("holding", "that_holds_a_lock", answers=("holder_died", "holder_died"))
add("reading", "that_holds_a_shared_lock", answers=("ok", "ok"))
add("waiting", "that_waits_for_a_lock", answers=("ok", "ok"), sleepers=(VICTIM, 2))
add("barrier", "while_others_are_in_a_barrier")
add("notice", "while_others_wait_for_its_notification")
add("short", "whose_memory_others_access_briefly", sleepers=())
add("making", "while_others_make_a_window")
add("owner", "whose_memory_others_push_to", sleepers=())
add("owner", "whose_memory_others_push_to", sleepers=(), **IN_PIECES)
add("pushing", "during_its_push", sleepers=(), kill=False)
add("pushing", "during_its_push", sleepers=(), kill=False, **IN_PIECES)

if __name__ == "__main__":
    unittest.main()
