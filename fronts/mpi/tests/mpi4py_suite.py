#!/usr/bin/env python3
"""Builds mpi4py with tonari's mpicc, and runs its tests with several numbers of ranks.

Usage: mpi4py_suite.py TONARI HEADER_FOLDER WORK_FOLDER RANKS [NAME...]. Exits with 77 if `scripts/setup mpi` has not
fetched mpi4py. With names, only the test files test_NAME.py run.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import sys

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tonari" / "mpi"

# Files of mpi4py's suite that need what tonari's MPI does not support yet: one-sided communication, files, processes
# that join later, and the fault tolerance of MPI 5.
LATER = ["rma", "rma_nb", "win", "file", "io", "dynproc", "spawn", "util_pool", "util_sync", "ulfm",
         "subclass"]  # makes windows and files as soon as it is imported

# Tests of the same, in files that are about something else.
LATER_TESTS = ["test_errhandler.TestErrhandlerFile.*", "test_msgspec.TestMessageRMA.*", "*.testSafeFreeCreated",
               "*File*", "*Win.*"]


def build(tonari, header, work):
    """Returns a folder with mpi4py built for this header; builds it if there is none."""
    target = work / ("mpi4py-" + hashlib.sha256(header.read_bytes()).hexdigest()[:12])
    if target.exists():
        return target
    commands = subprocess.run([tonari, "env", "--directory"], check=True, capture_output=True, text=True).stdout.strip()
    environment = {**os.environ, "MPICC": f"{commands}/mpicc", "CFLAGS": "-O0 -g0"}
    part = work / f"part-{os.getpid()}"
    subprocess.run([str(CACHE / "python" / "bin" / "pip"), "install", "--quiet", "--no-cache-dir", "--no-build-isolation",
                    "--no-deps", "--target", str(part), str(CACHE / "mpi4py")], env=environment, check=True)
    part.rename(target)
    return target


def files_of_the_suite(chosen):
    names = sorted(path.stem[len("test_"):] for path in (CACHE / "mpi4py" / "test").glob("test_*.py"))
    return chosen or [name for name in names if name not in LATER]


def main():
    tonari, headers, work, ranks, *chosen = sys.argv[1:]
    if not (CACHE / "mpi4py").exists() or not (CACHE / "python" / "bin" / "python").exists():
        print("mpi4py is not there: scripts/setup mpi fetches it")
        return 77
    work = pathlib.Path(work)
    work.mkdir(parents=True, exist_ok=True)
    package = build(tonari, pathlib.Path(headers, "mpi.h"), work)
    pattern = "|".join(rf"test_{re.escape(name)}\.py$" for name in files_of_the_suite(chosen))
    command = [tonari, "run", "-n", ranks, str(CACHE / "python" / "bin" / "python"),
               str(CACHE / "mpi4py" / "test" / "main.py"), "--quiet", "-f", "-i", pattern]
    for test in LATER_TESTS:
        command += ["-x", test]
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
