"""Static variables of a program and its libraries under `tonari far`."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from harness.far import NOBODY, FarTest
from harness.jobs import PROGRAMS

STATIC = os.path.join(PROGRAMS, "far_static")
# All arrays of the program and of its library.
STATIC_BYTES = 134 << 20

FORTRAN = """
program static_arrays
  implicit none
  integer, parameter :: n = 4000000
  real(8) :: a, b
  common /shared/ a(n), b(n)
  real(8), save :: c(n) = 1.0d0
  integer :: i, turn
  do i = 1, n
    a(i) = i
    b(i) = 2 * i
  end do
  do turn = 1, 3
    c = c + a + b
  end do
  do i = 1, n
    if (c(i) /= 1.0d0 + 9.0d0 * i) stop 1
  end do
  print '(a)', 'ok'
end program
"""

# Three arrays that several threads go through, as STREAM does, at least as large as STREAM's.
STREAM = """
#include <stdio.h>
#define N 2000000
static double a[N], b[N], c[N];
int main(void) {
  #pragma omp parallel for
  for (long i = 0; i < N; ++i) { a[i] = 1; b[i] = 2; }
  for (int turn = 0; turn < 3; ++turn) {
    #pragma omp parallel for
    for (long i = 0; i < N; ++i) c[i] = a[i] + b[i] + i;
    #pragma omp parallel for
    for (long i = 0; i < N; ++i) a[i] = b[i] + 3 * c[i];
  }
  for (long i = 0; i < N; ++i) {
    double x = 1, y = 0;
    for (int turn = 0; turn < 3; ++turn) { y = x + 2 + i; x = 2 + 3 * y; }
    if (a[i] != x || c[i] != y) return 1;
  }
  puts("ok");
  return 0;
}
"""


class StaticMemory(FarTest):
    def static(self, *options, words=()):
        """Runs far_static to its end in a folder of its own; returns its output, its messages and its statistics."""
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            status, output, error = self.run_job("far", "--stats=json", *options, "--", *words, cwd=folder)
        self.assertEqual(status, 0, error)
        *messages, statistics = error.splitlines()
        return output, messages, json.loads(statistics)

    def built(self, compiler, text, name, *options):
        """Returns the path of a program that is compiled from `text`."""
        if shutil.which(compiler) is None:
            self.skipTest(f"there is no {compiler}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        source = os.path.join(folder.name, name)
        with open(source, "w") as file:
            file.write(text)
        program = os.path.join(folder.name, "program")
        subprocess.run([compiler, *options, "-O1", source, "-o", program], check=True)
        return program

    def test_static_variables_of_a_program_and_its_library_are_far(self):
        for options in (["--local", "20%"], ["--local", "16M"], ["--local", "100%"],
                        ["--local", "20%", "--store", "lz4", "--memory", "512M"],
                        ["--local", "20%", "--servers", "2", "--replicas", "2"],
                        ["--local", "20%", "--apart", "network", "--memory", "512M"]):
            with self.subTest(options=options):
                output, messages, found = self.static(*options, words=[STATIC])
                self.assertEqual((output, messages), ("ok\n", []))
                self.assertGreater(found["in_use_peak_bytes"], STATIC_BYTES - (8 << 20))
                self.assertLessEqual(found["in_use_peak_bytes"], STATIC_BYTES)
                self.assertEqual(found["failures"], 0)
                if "100%" not in options:
                    self.assertGreater(found["bytes_out"], 90 << 20)
                    self.assertGreater(found["bytes_in"], 90 << 20)

    def test_variables_below_the_least_size_stay_local(self):
        _, _, found = self.static("--min-size", "20M", words=[STATIC])
        self.assertGreater(found["in_use_peak_bytes"], 63 << 20)
        self.assertLessEqual(found["in_use_peak_bytes"], 64 << 20)

    def test_a_child_has_the_variables_as_they_were_at_the_fork(self):
        for faults in ("keeper", "self"):
            with self.subTest(faults=faults):
                output, messages, _ = self.static("--faults", faults, "--local", "20%", words=[STATIC, "fork"])
                self.assertEqual((output, messages), ("ok\n", []))

    def test_system_calls_read_and_write_static_variables(self):
        output, messages, _ = self.static("--local", "16M", words=[STATIC, "calls"])
        self.assertEqual((output, messages), ("ok\n", []))

    def test_static_variables_can_be_given_back_and_protected(self):
        output, messages, _ = self.static("--local", "16M", words=[STATIC, "advise"])
        self.assertEqual((output, messages), ("ok\n", []))

    def test_a_program_that_a_wrapper_starts_has_far_static_variables(self):
        for wrapper in (["env", "A=b"], ["sh", "-c", '"$@"; exit $?', "sh"]):
            with self.subTest(wrapper=wrapper):
                output, _, found = self.static("--local", "20%", words=[*wrapper, STATIC])
                self.assertEqual((output, found["processes"]), ("ok\n", 1))
                self.assertGreater(found["bytes_out"], 90 << 20)

    def test_each_child_has_far_static_variables_of_its_own(self):
        both = '"$@" & "$@" fork && wait $!'
        output, _, found = self.static("--children", "--local", "20%", words=["sh", "-c", both, "sh", STATIC])
        self.assertEqual((output, found["processes"], found["failures"]), ("ok\nok\n", 2, 0))
        self.assertEqual(found["stored_bytes"], 0)

    def test_common_and_save_of_fortran_are_far(self):
        program = self.built("gfortran", FORTRAN, "static_arrays.f90")
        output, _, found = self.static("--local", "20%", words=[program])
        self.assertEqual(output, "ok\n")
        self.assertGreater(found["in_use_peak_bytes"], 90 << 20)
        self.assertGreater(found["bytes_out"], 60 << 20)

    def test_static_arrays_of_threads_are_far(self):
        program = self.built(os.environ.get("CC", "gcc"), STREAM, "stream.c", "-fopenmp")
        for options in (["--local", "20%"], ["--local", "20%", "--store", "lz4", "--memory", "512M"]):
            with self.subTest(options=options):
                output, _, found = self.static(*options, words=[program])
                self.assertEqual(output, "ok\n")
                self.assertGreater(found["in_use_peak_bytes"], 45 << 20)
                self.assertGreater(found["bytes_out"], 30 << 20)


class StaticMemoryOfAnOrdinaryUser(StaticMemory):
    user = NOBODY


if __name__ == "__main__":
    unittest.main()
