"""Exit statuses of `tonari run`, and the end of a job in which a rank dies."""

import os
import signal
import subprocess
import time
import unittest

from harness.far import memory_group
from harness.jobs import ACTOR, JobTest, asan_options, eventually, processes_marked

# A death is known within a second (docs/design.md). SLACK is the time that processes need to end.
KNOWN_WITHIN = 1.0
SLACK = 2.0


class ExitStatus(JobTest):
    def test_the_exit_status_is_zero_when_all_ranks_succeed(self):
        self.assertEqual(self.actors(3, "join", "leave")[0], 0)

    def test_the_exit_status_is_the_first_nonzero_status_of_a_rank(self):
        program = "echo up; test $TONARI_RANK = 0 && read LINE; exit $((TONARI_RANK + 3))"
        job = self.start("run", "-n", "2", "sh", "-c", program, stdin=subprocess.PIPE)
        job.output.wait_for("up", 2)
        eventually(lambda: len(processes_marked(self._mark)) == 2, "rank 1 has ended, run and rank 0 are left")
        job.process.stdin.close()
        self.assertEqual(job.end()[0], 4)

    def test_the_exit_status_is_that_of_a_rank_that_fails_after_leaving(self):
        self.assertEqual(self.actors(2, "join", "leave", "only", 1, "return", 7)[0], 7)

    def test_the_exit_status_for_a_killed_rank_is_128_plus_the_signal(self):
        status, _, error = self.actors(2, "only", 1, "kill", 9)
        self.assertEqual(status, 128 + 9)
        self.assertRegex(error, r"^tonari: rank 1 \(\S+/job_actor, pid \d+, host \S+\) was killed by signal 9 "
                                r"\(Killed\)\n$")


class ExitStatusNamed(JobTest):
    """One line names the first rank that exits with another status than 0."""

    def check(self, job_end, rank, program, status):
        answer, _, error = job_end
        self.assertEqual(answer, status)
        self.assertRegex(error, rf"^tonari: rank {rank} \({program}, pid \d+, host \S+\) exited with status "
                                rf"{status}\n$")

    def test_a_program_that_exits_with_a_status_without_joining_is_named(self):
        self.check(self.run_job("run", "-n", "3", "sh", "-c", "test $TONARI_RANK != 2 || exit 3"), 2, "sh", 3)

    def test_one_rank_is_named_when_all_ranks_fail(self):
        self.check(self.run_job("run", "-n", "8", "false"), r"\d", "false", 1)

    def test_a_rank_that_exits_with_a_status_after_leaving_is_named(self):
        self.check(self.actors(2, "join", "leave", "only", 1, "return", 7), 1, r"\S+/job_actor", 7)

    def test_no_rank_is_named_when_the_time_limit_stops_the_job(self):
        # Here ranks catch SIGTERM and exit with statuses of their own.
        program = "trap 'exit 9' TERM; echo up; sleep 1000 & wait"
        job = self.start("run", "-n", "3", "--timeout", "1", "sh", "-c", program)
        job.output.wait_for("up", 3)
        answer, _, error = job.end()
        self.assertEqual((answer, error), (124, "tonari: the job has run for 1 s (--timeout); stopping its 3 ranks\n"))

    def test_no_rank_is_named_when_a_signal_to_tonari_run_ends_the_job(self):
        job = self.start("run", "-n", "2", "sh", "-c", "trap 'exit 9' TERM; echo up; sleep 1000 & wait")
        job.output.wait_for("up", 2)
        job.signal(signal.SIGTERM)
        answer, _, error = job.end()
        self.assertEqual((answer, error), (9, ""))


class Death(JobTest):
    def check_stopped(self, job, text, status, since):
        answer, _, error = job.end()
        self.assertLess(time.monotonic() - since, KNOWN_WITHIN + SLACK)
        self.assertEqual(answer, status)
        lines = [line for line in error.splitlines() if line]
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], text)

    def start_waiting(self, ranks, *words, **others):
        job = self.start_actors(ranks, *words, **others)
        return job, [job.pid_of(rank) for rank in range(ranks)]

    def test_a_rank_killed_while_running_stops_the_others_and_is_named_in_one_line(self):
        job, pids = self.start_waiting(4, "say", "{rank} is {pid}", "join", "wait")
        job.output.wait_for("waiting", 4)
        since = time.monotonic()
        os.kill(pids[2], signal.SIGKILL)
        self.check_stopped(job, rf"^tonari: rank 2 \(pid {pids[2]}, host \S+\) was killed by signal 9 \(Killed\); "
                                r"stopping the other 3 ranks$", 137, since)

    def test_a_rank_killed_before_joining_stops_the_ranks_that_wait_for_it(self):
        job, pids = self.start_waiting(3, "say", "{rank} is {pid}", "only", 1, "wait", "join", "wait")
        job.output.wait_for("waiting")
        for rank in (0, 2):
            self.await_phase(job, rank, "joined")
        since = time.monotonic()
        os.kill(pids[1], signal.SIGKILL)
        self.check_stopped(job, r"rank 1 .* was killed by signal 9 \(Killed\) before it joined.*every rank must join",
                           137, since)

    def test_a_rank_killed_while_joining_stops_the_others(self):
        job, pids = self.start_waiting(3, "say", "{rank} is {pid}", "only", 1, "wait", "join", "wait")
        job.output.wait_for("waiting")
        for rank in (0, 2):
            self.await_phase(job, rank, "joined")
        since = time.monotonic()
        os.kill(pids[0], signal.SIGKILL)
        self.check_stopped(job, r"rank 0 .* was killed by signal 9 \(Killed\) while the ranks were joining", 137, since)

    def test_a_rank_killed_while_leaving_stops_the_others(self):
        job, pids = self.start_waiting(3, "say", "{rank} is {pid}", "join", "only", 0, "leave", "wait")
        job.output.wait_for("waiting", 2)
        self.await_phase(job, 0, "leaving")
        since = time.monotonic()
        os.kill(pids[0], signal.SIGKILL)
        self.check_stopped(job, r"rank 0 .* was killed by signal 9 \(Killed\); stopping the other 2 ranks", 137, since)

    def test_a_rank_killed_while_another_is_leaving_stops_the_others(self):
        job, pids = self.start_waiting(3, "say", "{rank} is {pid}", "join", "only", 0, "leave", "wait")
        job.output.wait_for("waiting", 2)
        self.await_phase(job, 0, "leaving")
        since = time.monotonic()
        os.kill(pids[1], signal.SIGKILL)
        self.check_stopped(job, r"rank 1 .* was killed by signal 9 \(Killed\); stopping the other 2 ranks", 137, since)

    def test_a_rank_killed_after_leaving_stops_no_other_rank(self):
        status, output, error = self.actors(2, "join", "leave", "only", 1, "kill", 9)
        self.assertEqual((status, output.count("left")), (137, 2))
        self.assertRegex(error, r"^tonari: rank 1 \(.* was killed by signal 9 \(Killed\)\n$")

    def test_a_rank_that_exits_without_leaving_stops_the_others(self):
        for word in ("exit", "quick"):
            for code, status in ((0, 1), (6, 6)):
                with self.subTest(word=word, code=code):
                    answer, _, error = self.actors(3, "join", "only", 1, word, code, "wait")
                    self.assertEqual(answer, status)
                    self.assertRegex(error, rf"rank 1 .* exited with status {code} without leaving the job: "
                                            r".*stopping the other 2 ranks\n$")

    def test_a_rank_that_leaves_by_an_exception_stops_the_others(self):
        status, output, error = self.actors(3, "only", 1, "throw", "only", 1, "return", 4, "join", "wait")
        self.assertEqual(status, 4)
        self.assertIn("caught as asked", output)
        self.assertRegex(error, r"^tonari: rank 1 .* left the job because of an exception; stopping the other 2 "
                                r"ranks\n$")

    def test_two_simultaneous_deaths_are_reported_in_one_line(self):
        job, pids = self.start_waiting(4, "say", "{rank} is {pid}", "join", "wait")
        job.output.wait_for("waiting", 4)
        since = time.monotonic()
        for pid in pids[1:3]:
            os.kill(pid, signal.SIGKILL)
        self.check_stopped(job, r"rank [12] .* was killed by signal 9", 137, since)

    def test_ranks_that_catch_sigterm_are_killed_after_a_death(self):
        job = self.start_actors(2, "say", "{rank} is {pid}", "only", 0, "catch", 15, "join", "wait")
        job.output.wait_for("waiting", 2)
        os.kill(job.pid_of(1), signal.SIGKILL)
        self.assertEqual(job.end()[0], 137)

    def test_ranks_with_a_death_handler_live_on_after_a_death(self):
        job, pids = self.start_waiting(3, "say", "{rank} is {pid}", "join", "live", "say", "ready", "only", 2, "wait",
                                       "hear", "leave")
        job.output.wait_for("ready", 3)
        os.kill(pids[2], signal.SIGKILL)
        status, output, error = job.end()
        self.assertEqual(status, 137)
        self.assertEqual(output.count("rank 2 died: signal 9 status 0"), 2)
        self.assertEqual(output.count("left"), 2)
        self.assertRegex(error, r"rank 2 .* was killed by signal 9 \(Killed\); 2 other ranks live on\n$")

    def test_the_report_of_a_death_says_how_many_ranks_live_on(self):
        job, pids = self.start_waiting(3, "say", "{rank} is {pid}", "join", "live", "say", "ready", "wait")
        job.output.wait_for("ready", 3)
        for dead, others in enumerate((r"2 other ranks live on", r"1 other rank lives on",
                                       r"no other rank is left in the job")):
            os.kill(pids[dead], signal.SIGKILL)
            job.error.wait_for(rf"^tonari: rank {dead} .* was killed by signal 9 \(Killed\); {others}$")
        self.assertEqual(job.end()[0], 137)

    def test_a_death_stops_only_ranks_without_a_death_handler(self):
        job, pids = self.start_waiting(3, "say", "{rank} is {pid}", "join", "only", 0, "live", "say", "ready",
                                       "but", 0, "wait", "hear", "leave")
        job.output.wait_for("ready", 3)
        os.kill(pids[2], signal.SIGKILL)
        status, output, error = job.end()
        self.assertEqual(status, 137)
        self.assertIn("left", output)
        self.assertRegex(error, r"; stopping 1 of the other ranks, 1 lives on\n")


class Abort(JobTest):
    """Job::abort() ends all ranks, and tonari run says which rank called it."""

    def check(self, answer, status, rank, others, code=None):
        self.assertEqual(answer[0], status, answer)
        self.assertRegex(answer[2], rf"^tonari: rank {rank} \(pid \d+, host \S+\) aborted the job with code "
                                    rf"{status if code is None else code}; {others}\n$")

    def test_an_abort_ends_all_ranks_wherever_they_are(self):
        job = self.start_actors(5, "join", "only", 1, "wait", "only", 2, "compute", "only", 3, "leave", "only", 4,
                                "barrier", "only", 0, "read", "only", 0, "abort", 7, stdin=subprocess.PIPE)
        job.output.wait_for("computing")
        job.output.wait_for("waiting")
        self.await_phase(job, 3, "leaving")
        job.process.stdin.write("go\n")
        job.process.stdin.flush()
        self.check(job.end(), 7, 0, "stopping the other 4 ranks")

    def test_the_exit_status_is_the_code_from_1_to_255(self):
        for code, status in ((1, 1), (255, 255), (0, 1), (256, 1), (261, 5), (-1, 255)):
            with self.subTest(code=code):
                self.check(self.actors(3, "join", "only", 1, "abort", code, "wait"), status, 1,
                           "stopping the other 2 ranks", code)

    def test_an_abort_from_another_thread(self):
        self.check(self.actors(2, "join", "only", 1, "elsewhere", 9, "barrier"), 9, 1, "stopping the other rank")

    def test_an_abort_ends_ranks_with_a_death_handler(self):
        answer = self.actors(3, "join", "live", "barrier", "only", 2, "abort", 4, "wait")
        self.check(answer, 4, 2, "stopping the other 2 ranks")
        self.assertNotIn("died", answer[1])

    def test_the_first_of_several_aborts_counts(self):
        answer = self.actors(8, "join", "barrier", "abort", 3)
        self.check(answer, 3, r"\d", "(stopping .*|no other rank is left in the job)")

    def test_an_abort_loses_no_output(self):
        answer = self.actors(2, "join", "only", 1, "print", "last words", "only", 1, "abort", 3, "wait")
        self.check(answer, 3, 1, "stopping the other rank")
        self.assertIn("last words", answer[1])

    def test_an_abort_under_a_wrapper(self):
        answer = self.run_job("run", "-n", "2", "sh", "-c", '"$@"; exit 77', "sh", ACTOR, "join", "only", 1, "abort",
                              "6", "wait")
        self.check(answer, 6, 1, "stopping the other rank")

    def test_an_abort_of_a_program_that_runs_alone(self):
        ended = subprocess.run([ACTOR, "join", "abort", "5"], capture_output=True, text=True, check=False,
                               env=self.environment())
        self.assertEqual(ended.returncode, 5)
        self.assertRegex(ended.stderr, r"^tonari: rank 0 \(pid \d+, host \S+\) aborted the job with code 5\n$")


class Leaving(JobTest):
    def test_a_rank_that_waits_long_to_leave_names_the_rank_it_waits_for(self):
        job = self.start_actors(2, "join", "only", 0, "leave", "wait", env=self.environment(TONARI_WARN_SECONDS="1"))
        job.error.wait_for(r"^tonari\[0\]: began to leave the job 1 s ago and still waits for rank 1 to do the "
                           r"same; `tonari status` shows what that rank is doing \(TONARI_WARN_SECONDS\)$")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.end()[0], 143)


class NeverJoining(JobTest):
    def test_programs_that_never_join_are_just_run(self):
        status, output, error = self.run_job("run", "-n", "3", "sh", "-c", "echo $TONARI_RANK of $TONARI_SIZE")
        self.assertEqual((status, sorted(output.split("\n")[:-1]), error), (0, ["0 of 3", "1 of 3", "2 of 3"], ""))

    def test_a_rank_that_ends_without_joining_is_reported(self):
        status, _, error = self.actors(3, "only", 1, "exit", 0, "join", "wait")
        self.assertEqual(status, 1)
        self.assertRegex(error, r"rank 1 .* exited with status 0 before it joined, and other ranks wait for it: every "
                                r"rank must join \(make a tonari::Job, or call MPI_Init\), or none; stopping the other 2 "
                                r"ranks\n$")

    def test_a_rank_that_does_not_join_in_time_is_reported(self):
        status, _, error = self.actors(3, "only", 1, "wait", "join", "wait",
                                       env=self.environment(TONARI_JOIN_SECONDS="1"))
        self.assertEqual(status, 1)
        self.assertRegex(error, r"^tonari: rank 1 has not joined 1 s after the first rank did: .*TONARI_JOIN_SECONDS "
                                r"higher; stopping the 3 ranks\n$")

    def test_the_time_limit_for_joining_starts_when_the_first_rank_joins(self):
        job = self.start_actors(1, "read", "join", "leave", env=self.environment(TONARI_JOIN_SECONDS="1"),
                                stdin=subprocess.PIPE)
        eventually(lambda: self.phases(job) == ["absent"], "it is up")
        time.sleep(1.5)  # longer than the limit: nothing may happen
        self.assertIsNone(job.process.poll())
        job.process.stdin.close()
        self.assertEqual(job.end()[0], 0)


class OutOfMemory(JobTest):
    def test_a_rank_that_the_out_of_memory_killer_ended_is_named(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a control group")
        code = "import os; x = bytearray(1200 << 20 if os.environ['TONARI_RANK'] == '1' else 1)"
        with memory_group(400 << 20) as enter:
            status, _, error = self.run_job("run", "-n", "2", "python3", "-c", code, preexec_fn=enter)
        self.assertEqual(status, 137)
        self.assertRegex(error, r"the kernel's out-of-memory killer ended rank 1, because .* no more than 400 MiB")


class RunItselfKilled(JobTest):
    def check_all_end(self, job):
        job.process.kill()
        job.process.wait()
        eventually(lambda: not processes_marked(self._mark), "no rank lives", KNOWN_WITHIN + SLACK)

    def test_running_ranks_end_when_tonari_run_is_killed(self):
        job = self.start_actors(3, "join", "wait")
        job.output.wait_for("waiting", 3)
        self.check_all_end(job)

    def test_ranks_that_wait_for_others_to_join_end_when_tonari_run_is_killed(self):
        job = self.start_actors(2, "only", 1, "wait", "join")
        job.output.wait_for("waiting")
        self.await_phase(job, 0, "joined")
        self.check_all_end(job)

    def test_ranks_under_a_shell_end_when_tonari_run_is_killed(self):
        job = self.start("run", "-n", "2", "sh", "-c", f"{ACTOR} join wait; true")
        job.output.wait_for("waiting", 2)
        self.check_all_end(job)

    def test_programs_that_never_joined_end_when_tonari_run_is_killed(self):
        job = self.start_actors(2, "wait")
        job.output.wait_for("waiting", 2)
        self.check_all_end(job)


class Membership(JobTest):
    def test_a_forked_child_that_destroys_the_job_leaves_its_parent_in_the_job(self):
        # The child does not free the parent's objects, and LeakSanitizer does not support forks of threaded programs.
        env = self.environment(ASAN_OPTIONS=asan_options("detect_leaks=0"))
        status, output, error = self.actors(2, "join", "fork", "leave", env=env)
        self.assertEqual((status, error), (0, ""))
        self.assertEqual((output.count("child ended with 7"), output.count("left")), (2, 2))

    def test_a_second_job_object_beside_the_first_is_refused(self):
        status, output, _ = self.actors(2, "join", "again", "leave")
        self.assertEqual((status, output.count("left")), (0, 2))
        self.assertRegex(output, r"refused this process as rank 1: process \d+ is this rank already")

    def test_a_second_job_object_after_the_first_is_refused(self):
        status, output, _ = self.actors(2, "join", "leave", "again")
        self.assertEqual(status, 0)
        self.assertRegex(output, r"process \d+ was this rank and has left already.*unset TONARI_JOIN to run alone")

    def test_a_program_run_alone_can_make_jobs_one_after_the_other(self):
        done = subprocess.run([ACTOR, "join", "again", "leave", "again"], capture_output=True, text=True,
                              env=self.environment())
        self.assertEqual((done.returncode, done.stdout.split("\n")[:-1]),
                         (0, ["rank 0 of 1 joined", "joined again", "left", "joined again"]))

    def test_a_rank_with_a_wrong_secret_is_refused(self):
        status, _, error = self.run_job("run", "-n", "1", "sh", "-c", f"TONARI_SECRET={64 * '0'} {ACTOR} join; exit 5")
        self.assertEqual(status, 5)
        self.assertIn("its TONARI_SECRET is not this job's", error)

    def test_a_rank_number_outside_the_job_is_refused(self):
        status, _, error = self.run_job("run", "-n", "2", "sh", "-c", f"TONARI_RANK=2 {ACTOR} join; exit 5")
        self.assertEqual(status, 5)
        self.assertIn("the job has ranks 0 to 1", error)

    def test_joining_after_tonari_run_has_ended_fails_with_a_remedy(self):
        done = subprocess.run([ACTOR, "join"], capture_output=True, text=True, env=self.environment(
            TONARI_JOIN="tonari-run-0", TONARI_SECRET=64 * "0", TONARI_RANK="0"))
        self.assertIn("connecting to `tonari run` at the abstract socket @tonari-run-0", done.stderr)
        self.assertIn("unset TONARI_JOIN to run alone", done.stderr)


if __name__ == "__main__":
    unittest.main()
