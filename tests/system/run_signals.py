"""Signals to `tonari run`, and its time limit."""

import os
import signal
import unittest

from harness.jobs import ACTOR, JobTest


class Signals(JobTest):
    def test_signals_to_tonari_run_reach_every_rank(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                job = self.start_actors(3, "catch", number, "wait")
                job.output.wait_for("waiting", 3)
                job.signal(number)
                job.output.wait_for(rf"caught {number.value}", 3)
                job.signal(number)
                self.assertEqual(job.end()[0], 137)

    def test_signals_to_tonari_run_end_ranks_that_do_not_catch_them(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(signal=number):
                job = self.start_actors(3, "join", "wait")
                job.output.wait_for("waiting", 3)
                job.signal(number)
                answer, _, error = job.end()
                self.assertEqual((answer, error), (status, ""))

    def test_a_second_signal_kills_ranks_that_caught_the_first(self):
        job = self.start_actors(2, "catch", 2, "wait")
        job.output.wait_for("waiting", 2)
        job.signal(signal.SIGINT)
        job.output.wait_for("caught 2", 2)
        job.signal(signal.SIGINT)
        self.assertEqual(job.end()[0], 137)

    def test_a_signal_to_tonari_run_ends_programs_under_a_shell(self):
        job = self.start("run", "-n", "2", "sh", "-c", f"{ACTOR} wait; true")
        job.output.wait_for("waiting", 2)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.end()[0], 143)

    def test_sigusr1_is_passed_on_to_every_rank_each_time(self):
        job = self.start_actors(2, "catch", 10, "wait")
        job.output.wait_for("waiting", 2)
        for times in (1, 2, 3):
            job.signal(signal.SIGUSR1)
            job.output.wait_for("caught 10", 2 * times)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.end()[0], 143)

    def test_a_signal_that_is_ignored_at_the_start_stays_ignored(self):
        job = self.start_actors(1, "wait", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        job.output.wait_for("waiting")
        job.signal(signal.SIGHUP)
        job.signal(signal.SIGTERM)
        self.assertEqual(job.end()[0], 143)


class TimeLimit(JobTest):
    def test_the_time_limit_stops_the_job_with_status_124(self):
        status, _, error = self.actors(2, "join", "wait", options=["--timeout", "0.3"])
        self.assertEqual(status, 124)
        self.assertEqual(error, "tonari: the job has run for 0.3 s (--timeout); stopping its 2 ranks\n")

    def test_the_time_limit_stops_ranks_that_catch_sigterm_and_outlive_others(self):
        status, _, _ = self.actors(2, "join", "live", "catch", 15, "wait", options=["--timeout", "0.3"])
        self.assertEqual(status, 124)

    def test_the_time_limit_does_not_affect_a_job_that_ends_in_time(self):
        self.assertEqual(self.actors(2, "join", "leave", options=["--timeout", "60"])[0], 0)


if __name__ == "__main__":
    unittest.main()
