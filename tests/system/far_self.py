"""Programs whose threads serve their own page faults, in a handler of SIGBUS: the usual way, and `--faults self`."""

import json
import os
import shutil
import signal
import unittest

from harness.far import NOBODY, TORTURE, FarTest
from harness.jobs import PROGRAMS, processes_marked

CALLS = os.path.join(PROGRAMS, "far_calls")
COMMANDS = os.path.join(PROGRAMS, "far_commands")
RAW_CALLS = os.path.join(PROGRAMS, "far_raw_calls")
SIGNALS = os.path.join(PROGRAMS, "far_signals")
STATIC = os.path.join(PROGRAMS, "far_static")


class FarSelfTest(FarTest):
    def far(self, *words):
        """Runs a program with a fifth of its memory local, and returns its output and its statistics."""
        status, output, error = self.run_job("far", "--faults", "self", "--stats=json", "--local", "16M", *words)
        self.assertEqual(status, 0, error)
        return output, json.loads(error.splitlines()[-1])


class OwnFaults(FarSelfTest):
    def test_far_memory_has_the_same_content_as_local_memory(self):
        found = self.torture("--faults", "self", "--local", "8M")
        self.assertGreater(found["faults_by_threads"], 0)
        self.assertGreater(found["bytes_out"], 0)

    def test_signals_of_the_program_do_not_disturb_faults(self):
        for case in ("blocked", "handler", "alternate", "alternates", "own", "protected", "suspended",
                     "early", "cancelled", "sent", "files", "given", "locked", "constant"):
            with self.subTest(case=case):
                output, found = self.far("--", SIGNALS, case)
                self.assertEqual(output, "ok\n")
                # In "given", most pages are read in order, and the keeper serves those faults.
                self.assertGreater(found["faults_by_threads"], 0 if case == "given" else 1000)

    def test_handlers_and_masks_that_are_older_than_far_memory_do_not_disturb_faults(self):
        output, found = self.far("--", "env", "A=b", SIGNALS, "early")
        self.assertEqual(output, "ok\n")
        self.assertGreater(found["faults_by_threads"], 1000)

    def test_system_calls_reach_far_memory(self):
        status, output, error = self.run_job("far", "--faults", "self", "--local", "8M", "--", CALLS)
        self.assertEqual((status, output), (0, "ok\n"), error)

    def test_a_pipe_keeps_the_bytes_of_pages_that_leave(self):
        for faults in ("self", "keeper"):
            # With less local memory, pages that have left are dropped, and not used for others.
            status, output, error = self.run_job("far", "--faults", faults, "--local", "48M", "--", CALLS, "pipes")
            self.assertEqual((status, output), (0, "ok\n"), error)

    def test_system_calls_that_no_wrapper_sees_reach_far_memory(self):
        for case in ("data", "texts", "streams", "locks", "semaphores", "interruptions", "cancellation", "children",
                     "filter", "executed", "stacks", "counts", "once", "masks", "reserved", "protected"):
            with self.subTest(case=case):
                status, output, error = self.run_job("far", "--local", "8M", "--stats=json", "--", RAW_CALLS, case)
                self.assertEqual((status, output), (0, "ok\n"), error)
                if case in ("data", "locks"):
                    self.assertGreater(json.loads(error.splitlines()[-1])["faults_by_threads"], 0, error)

    def test_programs_are_started_with_commands_and_variables_in_far_memory(self):
        for case in ("systems", "pipes", "executions", "spawns"):
            with self.subTest(case=case):
                status, output, error = self.run_job("far", "--local", "8M", "--", COMMANDS, case)
                self.assertEqual((status, output), (0, "ok\n"), error)

    def test_older_functions_for_signals_do_not_disturb_faults(self):
        status, output, error = self.run_job("far", "--local", "8M", "--", COMMANDS, "signals")
        self.assertEqual((status, output), (0, "ok\n"), error)

    def test_asynchronous_calls_of_the_kernel_are_refused_where_they_would_not_reach_far_memory(self):
        refused = (0, "io_uring: -38\nok\n")  # ENOSYS
        for faults, expected in (("auto", refused), ("self", refused)):
            status, output, error = self.run_job("far", "--faults", faults, "--", RAW_CALLS, "rings")
            self.assertEqual((status, output), expected, error)
        status, output, error = self.run_job("far", "--faults", "keeper", "--", RAW_CALLS, "rings")
        self.assertEqual(status, 0, error)
        self.assertNotIn("-38", output)

    def test_static_variables_are_far_memory(self):
        output, _ = self.far("--", STATIC)
        self.assertIn("ok", output)

    def test_programs_that_a_wrapper_starts_serve_their_own_faults(self):
        output, found = self.far("--", "env", "A=b", TORTURE, "1", "2", "10", "64")
        self.assertEqual(output, "ok\n")
        self.assertGreater(found["faults_by_threads"], 0)

    def test_the_keeper_serves_the_faults_of_programs_that_wait_for_signals(self):
        for case in ("waited", "files", "locked", "constant", "given"):
            with self.subTest(case=case):
                status, output, error = self.run_job("far", "--faults", "keeper", "--local", "16M", "--", SIGNALS, case)
                self.assertEqual((status, output), (0, "ok\n"), error)


class ChoiceOfFaults(FarSelfTest):
    def faults_by_threads(self, *words):
        return self.torture("--local", "8M", *words)["faults_by_threads"]

    def test_threads_serve_their_own_faults_unless_something_speaks_against_it(self):
        self.assertGreater(self.faults_by_threads(), 0)
        self.assertEqual(self.faults_by_threads("--faults", "keeper"), 0)
        self.assertEqual(self.faults_by_threads("--store", "lz4"), 0)

    def test_the_keeper_serves_a_program_that_is_part_of_an_mpi_job(self):
        status, output, error = self.run_job("far", "--stats=json", "--local", "8M", "--", "env", "PMI_SIZE=2", TORTURE,
                                             "1", "2", "10", "64")
        self.assertEqual((status, output), (0, "ok\n"), error)
        self.assertEqual(json.loads(error.splitlines()[-1])["faults_by_threads"], 0)

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed: scripts/setup far")
    def test_the_keeper_serves_a_program_that_a_debugger_would_stop(self):
        status, output, error = self.run_job("far", "--stats=json", "--local", "8M", "--", "strace", "-f", "-o",
                                             "/dev/null", TORTURE, "1", "2", "10", "64")
        self.assertEqual((status, output), (0, "ok\n"), error)
        self.assertEqual(json.loads(error.splitlines()[-1])["faults_by_threads"], 0)


class OwnFaultsOfAnOrdinaryUser(OwnFaults):
    user = NOBODY


class StoresAndEndings(FarSelfTest):
    def test_pages_come_back_from_compressed_memory_and_from_a_file(self):
        for store in (["lz4"], ["file:."], ["lz4,file:.", "--memory", "32M"]):
            with self.subTest(store=store):
                self.torture("--faults", "self", "--local", "8M", "--store", *store, rounds=20)

    def test_the_keeper_serves_all_faults_once_the_program_has_closed_its_descriptors(self):
        output, found = self.far("--", SIGNALS, "descriptors")
        self.assertEqual(output, "ok\n")
        self.assertGreater(found["faults"], 1000)

    def test_the_death_of_a_server_ends_the_program_with_a_message(self):
        job = self.start_torture("--faults", "self", "--local", "8M")
        os.kill(self.server_of(job, 1), signal.SIGKILL)
        status, _, error = job.end()
        self.assertEqual(status, 137)
        self.assertIn("server", error)
        self.assertIn("died", error)

    def test_the_death_of_the_keeper_ends_the_program(self):
        job = self.start_torture("--faults", "self", "--local", "8M")
        os.kill(self.server_of(job, 0), signal.SIGKILL)
        self.assertEqual(job.end()[0], 137)
        self.assertEqual(processes_marked(job.mark), [])

    def test_the_death_of_one_of_two_servers_loses_nothing(self):
        job = self.start_torture("--faults", "self", "--local", "8M", "--servers", 2, "--replicas", 2)
        os.kill(self.server_of(job, 1), signal.SIGKILL)
        job.process.stdin.close()
        status, output, error = job.end()
        self.assertEqual((status, output.splitlines()[-1:]), (0, ["ok"]), error)


if __name__ == "__main__":
    unittest.main()
