"""Shared by the tests of mpicc, mpiexec and the `tonari` command: building programs, and starting them."""

import pathlib
import re
import subprocess
import tempfile
import unittest

from harness.jobs import PATIENCE, TONARI, JobTest, has_sanitizer

COMMANDS = pathlib.Path(subprocess.run([TONARI, "env", "--directory"], check=True, capture_output=True,
                                       text=True).stdout.strip())
MPIEXEC = COMMANDS / "mpiexec"


def setUpModule():
    if has_sanitizer(TONARI):
        raise unittest.SkipTest("programs that mpicc compiles have no sanitizer, and cannot load a library that has one")


# Prints its rank, the number of ranks, MPI_APPNUM, its arguments, and the variable GIVEN.
WHO = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, size, found, *program;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &program, &found);
  printf("%d of %d program %d", rank, size, found ? *program : -1);
  for (int i = 1; i < argc; ++i) printf(" <%s>", argv[i]);
  if (getenv("GIVEN")) printf(" GIVEN=%s", getenv("GIVEN"));
  printf("\n");
  return MPI_Finalize();
}
"""

# Each rank executes the code in PROGRAM's place.
FRAME = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, number = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PROGRAM
  return MPI_Finalize();
}
"""


class CommandTest(JobTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def environment(self, **variables):
        """Ours, without the variables of other MPIs."""
        kept = {name: value for name, value in super().environment().items()
                if not re.match(r"PMI|OMPI|MPICH|MV2|SLURM|GIVEN$", name)}
        return {**kept, **variables}

    def command(self, name, *arguments, status=0, **variables):
        """Runs a command of tonari's MPI; returns its output, and its error output if it fails."""
        done = subprocess.run([COMMANDS / name, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE,
                              cwd=self.folder, env=self.environment(**variables), check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def built(self, text, *options, name="program", compiler="mpicc"):
        """Returns the path of a program that is compiled from `text`."""
        source = self.folder / (name + (".c" if compiler == "mpicc" else ".cpp"))
        source.write_text(text)
        self.command(compiler, source, "-o", self.folder / name, *options)
        return self.folder / name

    def framed(self, code, *options, name="program", includes=()):
        lines = "".join(f"#include <{each}>\n" for each in includes)
        return self.built(lines + FRAME.replace("PROGRAM", code), *options, name=name)

    def start_mpiexec(self, *arguments, **options):
        return self.start(*arguments, command=(str(MPIEXEC),), **options)

    def mpiexec(self, *arguments, **options):
        """Runs mpiexec to its end; returns the exit status, the output's lines, sorted, and the error output."""
        status, output, error = self.start_mpiexec(*arguments, **options).end()
        return status, sorted(output.splitlines()), error
