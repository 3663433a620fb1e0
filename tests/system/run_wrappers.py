"""Programs under shells, debuggers and profilers: the process that joins is not the one that was started."""

import os
import shutil
import signal
import unittest

from harness.jobs import ACTOR, JobTest

DEATH_OF_RANK_1 = r"tonari: rank 1 .*(was killed by signal 9|known only to the program that it ran under)"


class Wrappers(JobTest):
    def check_joins(self, *wrapper):
        status, output, _ = self.run_job("run", "-n", "2", *wrapper, ACTOR, "join", "leave")
        self.assertEqual((status, output.count("joined"), output.count("left")), (0, 2, 2), output)

    def check_death_is_known(self, *wrapper):
        job = self.start("run", "-n", "2", *wrapper, ACTOR, "say", "{rank} is {pid}", "join", "wait")
        job.output.wait_for("waiting", 2)
        os.kill(job.pid_of(1), signal.SIGKILL)
        status, _, error = job.end()
        self.assertRegex(error, DEATH_OF_RANK_1)
        self.assertNotEqual(status, 0)

    def need(self, program, sanitized=True):
        if shutil.which(program) is None:
            self.skipTest(f"{program} is not installed")
        with open(ACTOR, "rb") as file:
            if not sanitized and b"__asan_init" in file.read():
                self.skipTest(f"{program} and AddressSanitizer exclude each other")

    def test_ranks_started_by_env_join(self):
        self.check_joins("env", "A=1")

    def test_ranks_started_by_a_shell_join_and_the_status_of_the_shell_counts(self):
        status, output, _ = self.run_job("run", "-n", "2", "sh", "-c", f"{ACTOR} join leave; exit $((TONARI_RANK * 3))")
        self.assertEqual((status, output.count("left")), (3, 2))

    def test_the_death_of_a_rank_under_a_shell_is_reported(self):
        job = self.start("run", "-n", "2", "sh", "-c", f"{ACTOR} say '{{rank}} is {{pid}}' join wait; true")
        job.output.wait_for("waiting", 2)
        os.kill(job.pid_of(1), signal.SIGKILL)
        status, _, error = job.end()
        self.assertRegex(error, DEATH_OF_RANK_1)
        self.assertIn(status, (137, 1))

    def test_ranks_under_gdb_join_and_their_death_is_reported(self):
        self.need("gdb")
        self.check_joins("gdb", "-batch", "-ex", "run", "--args")
        self.check_death_is_known("gdb", "-batch", "-ex", "run", "--args")

    def test_ranks_under_valgrind_join_and_their_death_is_reported(self):
        self.need("valgrind", sanitized=False)
        self.check_joins("valgrind", "-q")
        self.check_death_is_known("valgrind", "-q")

    def test_ranks_under_strace_join(self):
        self.need("strace", sanitized=False)
        self.check_joins("strace", "-f", "-o", "/dev/null")

    def test_a_rank_in_another_ipc_namespace_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root makes namespaces everywhere")
        _, _, error = self.run_job("run", "-n", "1", "unshare", "-i", ACTOR, "join")
        self.assertIn("it is in a different IPC namespace than `tonari run`", error)

    def test_a_rank_in_another_network_namespace_is_told_why_it_cannot_join(self):
        if os.geteuid() != 0:
            self.skipTest("only root makes namespaces everywhere")
        _, _, error = self.run_job("run", "-n", "1", "unshare", "-n", ACTOR, "join")
        self.assertIn("this process was moved into another network namespace", error)

    def test_ranks_in_another_process_namespace_join(self):
        if os.geteuid() != 0:
            self.skipTest("only root makes namespaces everywhere")
        self.check_joins("unshare", "-pf")


if __name__ == "__main__":
    unittest.main()
