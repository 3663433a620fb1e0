"""`tonari run` in sandboxes that refuse system calls: a refused call is named, or another one is used instead."""

import os
import tempfile
import unittest

from harness.jobs import ACTOR, PROGRAMS, JobTest, asan_options

NOT_PERMITTED = "Operation not permitted"


class Sandboxed(JobTest):
    def run_without(self, call, *arguments, **variables):
        self.within = (os.path.join(PROGRAMS, "sandboxed"), "--refuse", call)
        env = self.environment(ASAN_OPTIONS=asan_options("detect_leaks=0"), **variables)
        return self.run_job(*arguments, env=env)

    def test_without_sched_getaffinity_the_number_of_ranks_must_be_given(self):
        status, output, error = self.run_without("sched_getaffinity", "run", "echo", "x")
        self.assertEqual((status, output), (2, ""))
        self.assertEqual(error, f"tonari run: sched_getaffinity: {NOT_PERMITTED}; use -n and --bind none, or let the "
                                "sandbox's filter allow the call\n")

    def test_without_affinity_calls_ranks_run_unbound_with_a_warning(self):
        for call in ("sched_getaffinity", "sched_setaffinity"):
            with self.subTest(call=call):
                status, output, error = self.run_without(call, "run", "-n", "1", "echo", "x")
                self.assertEqual((status, output), (0, "x\n"))
                self.assertRegex(error, rf"^tonari run: ranks are not bound to cores: {call}: {NOT_PERMITTED}; .*\n$")
                unbound = self.run_without(call, "run", "-n", "1", "--bind", "none", "echo", "x")
                self.assertEqual(unbound, (0, "x\n", ""))

    def test_without_affinity_calls_an_explicit_binding_is_an_error(self):
        for call in ("sched_getaffinity", "sched_setaffinity"):
            with self.subTest(call=call):
                status, _, error = self.run_without(call, "run", "-n", "1", "--bind", "core", "true")
                self.assertEqual(status, 2)
                self.assertRegex(error, rf"^tonari run: {call}: {NOT_PERMITTED}; .*\n$")

    def test_without_sched_getaffinity_the_machine_is_described_without_its_cores(self):
        status, output, _ = self.run_without("sched_getaffinity", "info")
        self.assertEqual(status, 0)
        self.assertRegex(output, f"cores +unknown: sched_getaffinity: {NOT_PERMITTED}; let the sandbox's filter allow")
        self.assertIn("features", output)

    def test_without_clone3_programs_are_started_by_clone(self):
        self.assertEqual(self.run_without("clone3", "run", "-n", "2", "echo", "x"), (0, 2 * "x\n", ""))

    def test_without_clone3_launchers_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mpirun")
            with open(path, "w") as file:
                file.write("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n")
            os.chmod(path, 0o755)
            status, output, _ = self.run_without("clone3", "info", PATH=folder)
            self.assertEqual(status, 0)
            self.assertIn("mpirun (Open MPI 4.1.4)", output)

    def test_without_clone3_a_rank_says_that_it_cannot_start_a_thread(self):
        status, _, error = self.run_without("clone3", "run", "-n", "1", ACTOR, "join", "leave")
        self.assertNotEqual(status, 0)
        self.assertRegex(error, rf"starting the service thread: clone3: {NOT_PERMITTED}; let the sandbox's filter "
                                "allow clone3, or refuse it with ENOSYS")


if __name__ == "__main__":
    unittest.main()
