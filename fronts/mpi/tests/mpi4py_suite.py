#!/usr/bin/env python3
"""Builds mpi4py with tonari's mpicc, and runs its tests with several numbers of ranks.

Usage: mpi4py_suite.py TONARI RANKS [NAME...]. Exits with 77 if `scripts/setup mpi` has not fetched mpi4py. With names,
only the test files test_NAME.py run.
"""

import re
import shutil
import subprocess
import sys

import projects

# Files of mpi4py's suite that need what tonari's MPI does not support yet: one-sided communication, files, processes
# that join later, and the fault tolerance of MPI 5.
LATER = ["rma", "rma_nb", "win", "file", "io", "dynproc", "spawn", "util_pool", "util_sync", "ulfm",
         "subclass"]  # makes windows and files as soon as it is imported

# Tests of the same, in files that are about something else.
LATER_TESTS = ["test_errhandler.TestErrhandlerFile.*", "test_msgspec.TestMessageRMA.*", "*.testSafeFreeCreated",
               "*File*", "*Win.*"]


def recipe(folder, mpi):
    shutil.rmtree(folder / "build", ignore_errors=True)  # of an earlier build in the folder of the sources
    projects.shell(folder, projects.PYTHON, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-build-isolation",
                   "--no-deps", "--target", "installed", ".", MPICC=mpi.cc, CFLAGS="-O0 -g0")


def built(mpi):
    """Returns a folder with mpi4py's source, built with an MPI, and lets the MPI's programs import it."""
    folder = projects.built("mpi4py", mpi, recipe)
    mpi.environment["PYTHONPATH"] = str(folder / "installed")
    return folder


def files_of_the_suite(folder):
    names = sorted(path.stem[len("test_"):] for path in (folder / "test").glob("test_*.py"))
    return [name for name in names if name not in LATER]


def main():
    command, ranks, *chosen = sys.argv[1:]
    mpi = projects.tonari(command)
    folder = built(mpi)
    pattern = "|".join(rf"test_{re.escape(name)}\.py$" for name in chosen or files_of_the_suite(folder))
    words = [*mpi.start, "-n", ranks, projects.PYTHON, folder / "test" / "main.py", "--quiet", "-f", "-i", pattern]
    for test in LATER_TESTS:
        words += ["-x", test]
    return subprocess.run(words, env=mpi.environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
