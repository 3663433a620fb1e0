"""Programs that use MPI and tonari::Job at once: one runtime, or a clear refusal."""

import os
import subprocess
import sys
import unittest

from harness.jobs import PROGRAMS, JobTest, has_sanitizer

SHARED = os.path.join(PROGRAMS, "mpi_both")
STATIC = os.path.join(PROGRAMS, "mpi_both_static")
LIBRARY = os.path.join(os.environ["TONARI_BIN"], "..", "lib", "libmpi_abi.so.1")
ORDERS = ("inside", "outside", "job-first", "mpi-first", "mixed", "session")

# Loads both libraries as Python's extension modules are loaded: their symbols are not visible to other libraries.
PYTHON = """
import ctypes, os, sys
mpi = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_NOW)
module = ctypes.CDLL(sys.argv[2], mode=os.RTLD_LOCAL | os.RTLD_NOW)
world, rank = ctypes.c_void_p(0x101), ctypes.c_int(-1)
if sys.argv[3] == "mpi": mpi.MPI_Init(None, None)
begun = module.begin()
if sys.argv[3] == "job": mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
assert begun == rank.value, (begun, rank.value)
assert module.sum_of(rank.value + 1) == 6
mpi.MPI_Barrier(world)
if sys.argv[3] == "mpi": module.end()
mpi.MPI_Finalize()
if sys.argv[3] == "job": module.end()
print("done")
"""


class Both(JobTest):
    def test_mpi_and_a_job_share_one_runtime_in_any_order(self):
        for options in ((), ("--apart", "network")):
            for order in ORDERS:
                with self.subTest(order=order, options=options):
                    self.assertEqual(self.run_job("run", "-n", 3, *options, SHARED, order), (0, 3 * "done\n", ""))

    def test_they_share_it_in_a_process_that_runs_alone(self):
        for order in ORDERS:
            with self.subTest(order=order):
                done = subprocess.run([SHARED, order], capture_output=True, text=True, env=self.environment())
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))

    def test_they_share_it_if_python_loads_both(self):
        if has_sanitizer(SHARED):
            self.skipTest("Python itself has no sanitizer, whose runtime would have to be loaded first")
        for first in ("mpi", "job"):
            with self.subTest(first=first):
                self.assertEqual(self.run_job("run", "-n", 3, sys.executable, "-c", PYTHON, LIBRARY,
                                              os.path.join(PROGRAMS, "mpi_both_module.so"), first),
                                 (0, 3 * "done\n", ""))

    def test_a_program_with_its_own_copy_of_the_runtime_is_refused_and_told_what_to_link(self):
        for first in ("mpi", "job"):
            with self.subTest(first=first):
                status, output, error = self.run_job("run", "-n", 3, STATIC, LIBRARY, first)
                self.assertNotEqual(status, 0)
                self.assertRegex(output + error, "is this rank already: a rank makes one tonari::Job.*link it with "
                                                 "tonari::tonari_shared")

    def test_alone_such_a_program_has_two_jobs_of_one_rank(self):
        done = subprocess.run([STATIC, LIBRARY, "mpi"], capture_output=True, text=True, env=self.environment())
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "done\n", ""))


if __name__ == "__main__":
    unittest.main()
