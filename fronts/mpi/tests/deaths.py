"""A rank of a program written for MPI dies, aborts or leaves too early: the job ends with a clear text, or the calls of
the other ranks fail, as their error handler says."""

import os
import signal
import unittest

from harness.jobs import PROGRAMS, JobTest, eventually, state_of

PROGRAM = os.path.join(PROGRAMS, "mpi_deaths")
VICTIM = 1
SURVIVORS = (0, 2)
CALLS = ("recv any ssend send sendrecv probe mprobe waitany waitall persistent partitioned barrier allreduce ialltoall "
         "bcast split idup").split()
WAYS = {"shared memory": (), "network": ("--apart", "network")}
KILLED = r"was killed by signal 9 \(Killed\)"


class Deaths(JobTest):
    def start_program(self, ending, call, handler, way):
        return self.start("run", "-n", 3, *WAYS[way], PROGRAM, ending, call, handler)

    def start_and_kill(self, call, handler, way):
        job = self.start_program("killed", call, handler, way)
        pids = [job.pid_of(rank) for rank in range(3)]
        job.output.wait_for("is ready", 3)
        for rank in SURVIVORS:
            eventually(lambda: state_of(pids[rank]) == "S", f"rank {rank} sleeps")
        os.kill(pids[VICTIM], signal.SIGKILL)
        return job

    def for_all(self, check, calls=CALLS):
        for way in WAYS:
            for call in calls:
                with self.subTest(way=way, call=call):
                    check(call, way)

    # MPI_Error_string has the text of the last failure: after MPI_ERR_IN_STATUS not that of a status.
    def text(self, call, cause):
        # MPI_Waitall returns MPI_ERR_IN_STATUS, and the class of the status has the text of its request.
        return f"receiving: .*{cause}" if call == "waitall" else f"MPI_.*{cause}"

    def check_went_on(self, job, cause, status):
        answer, output, error = job.end()
        for rank in SURVIVORS:
            self.assertRegex(output, rf"rank {rank} saw MPI_ERR_PROC_ABORTED: {cause}", error)
            self.assertIn(f"rank {rank} went on", output, error)
            self.assertIn(f"rank {rank} left", output, error)
        self.assertEqual(answer, status, error)
        return error

    def test_by_default_a_death_ends_the_job(self):
        def check(call, way):
            status, output, error = self.start_and_kill(call, "fatal", way).end()
            self.assertEqual(status, 128 + signal.SIGKILL)
            self.assertRegex(error, rf"^tonari: rank 1 \(pid \d+, host \S+\) {KILLED}; stopping the other 2 ranks\n$")
            self.assertNotIn("saw", output)
        self.for_all(check, ("recv", "waitany", "allreduce", "ialltoall"))

    def test_with_errors_return_calls_that_need_the_dead_rank_fail_and_others_go_on(self):
        def check(call, way):
            job = self.start_and_kill(call, "return", way)
            error = self.check_went_on(job, self.text(call, rf"of MPI_COMM_WORLD, rank 1 \(host \S+\) {KILLED}"),
                                       128 + signal.SIGKILL)
            self.assertRegex(error, rf"^tonari: rank 1 \(pid \d+, host \S+\) {KILLED}; 2 other ranks live on\n$")
        self.for_all(check)

    def test_a_users_error_handler_hears_of_a_death(self):
        for call in ("recv", "waitany", "waitall", "allreduce"):
            with self.subTest(call=call):
                self.check_went_on(self.start_and_kill(call, "user", "shared memory"), self.text(call, KILLED),
                                   128 + signal.SIGKILL)

    def test_survivors_finalize(self):
        status, output, error = self.start_and_kill("finalize", "return", "shared memory").end()
        self.assertEqual((status, output.count("left")), (128 + signal.SIGKILL, 2), error)

    def test_an_abort_ends_all_ranks_whatever_the_handler(self):
        for way in WAYS:
            for handler in ("fatal", "return", "user"):
                with self.subTest(way=way, handler=handler):
                    status, output, error = self.start_program("abort", "recv", handler, way).end()
                    self.assertEqual(status, 7)
                    self.assertRegex(error, r"^tonari: rank 1 on \S+: MPI_Abort on MPI_COMM_WORLD with code 7\n"
                                            r"tonari: rank 1 \(pid \d+, host \S+\) aborted the job with code 7; stopping "
                                            r"the other 2 ranks\n$")
                    self.assertNotIn("saw", output)

    def test_a_rank_that_exits_without_finalizing_ends_the_job_by_default(self):
        for ending, code in (("exit", 3), ("return", 0)):
            with self.subTest(ending=ending):
                status, output, error = self.start_program(ending, "recv", "fatal", "shared memory").end()
                self.assertEqual(status, code or 1)
                self.assertNotIn("exits without", error)  # one line is enough
                self.assertRegex(error, rf"rank 1 \(pid \d+, host \S+\) exited with status {code} .*MPI_Finalize.*; stopping "
                                        r"the other 2 ranks\n")
                self.assertNotIn("saw", output)

    def test_a_rank_that_exits_without_finalizing_is_dead_for_ranks_that_go_on(self):
        for ending, code in (("exit", 3), ("return", 0)):
            with self.subTest(ending=ending):
                job = self.start_program(ending, "recv", "return", "shared memory")
                self.check_went_on(job, rf"MPI_Recv.*rank 1 \(host \S+\) exited with status {code}", code or 1)

    def test_calls_that_need_a_rank_that_has_finalized_fail(self):
        for way in WAYS:
            for call in ("recv", "ssend", "send", "probe"):
                with self.subTest(way=way, call=call):
                    job = self.start_program("finalize", call, "return", way)
                    self.check_went_on(job, "MPI_.*has called MPI_Finalize already", 0)

    def test_by_default_such_a_call_ends_the_job(self):
        status, _, error = self.start_program("finalize", "ssend", "fatal", "shared memory").end()
        self.assertEqual(status, 1)
        self.assertRegex(error, r"MPI_Ssend on MPI_COMM_WORLD failed with MPI_ERR_PROC_ABORTED: sending to rank 1 with tag "
                                r"0: a rank that the call needs has called MPI_Finalize already")


if __name__ == "__main__":
    unittest.main()
