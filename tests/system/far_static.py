"""Static variables of a program and its libraries under `tonari far`."""

import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

from harness.far import NOBODY, FarTest, faults_told
from harness.jobs import PROGRAMS

PYTHON = "/usr/bin/python3"  # for other users, too
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

# A program with arrays of 48 MiB without first values and of 24 MiB with, and with small variables of all kinds around
# them. It reads and writes the small ones, also by system calls, while the arrays go through memory.
STRIPPED = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N (6 << 20)
static int first = 7;
static uint64_t words[N];
static struct stat status;
static int ends[2];
static char text[300];
static uint64_t values[N / 2] = {3, 1, 4};
static uint64_t counts[8];
static uint64_t seed;

static uint64_t word(uint64_t i, uint64_t turn) { return (i + seed) * 0x9e3779b97f4a7c15u ^ turn; }

static int check(int condition, const char* what) {
  if (!condition) { fprintf(stderr, "%s\n", what); _exit(1); }
  return condition;
}

static void compute(uint64_t turn) {
  for (uint64_t i = 0; i < N; ++i) words[i] = word(i, turn);
  for (uint64_t i = 0; i < N / 2; ++i) values[i] = word(i, ~turn);
  for (uint64_t i = 0; i < N; ++i) check(words[i] == word(i, turn), "a word has changed");
  for (uint64_t i = 0; i < N / 2; ++i) check(values[i] == word(i, ~turn), "a value has changed");
}

static void call(uint64_t turn) {
  check(stat(".", &status) == 0 && S_ISDIR(status.st_mode), "stat");
  check(pipe(ends) == 0, "pipe");
  counts[2] = turn;
  check(write(ends[1], &counts[2], 8) == 8 && read(ends[0], &counts[3], 8) == 8 && counts[3] == turn, "a pipe");
  close(ends[0]);
  close(ends[1]);
  snprintf(text, sizeof text, "%d %lu", first, (unsigned long)turn);
  int seen = 0;
  check(sscanf(text, "%d", &seen) == 1 && seen == 7, "a text");
}

#ifdef LOCKS
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void* count(void* unused) {
  for (int i = 0; i < 100000; ++i) {
    pthread_mutex_lock(&lock);
    ++counts[5];
    pthread_mutex_unlock(&lock);
  }
  return unused;
}
static pthread_t threads[4];
#endif

int main(int count_of_words, char** arguments) {
  check(count_of_words == 2 && values[1] == 1 && values[2] == 4 && words[N - 1] == 0, "first values");
  seed = strtoull(arguments[1], NULL, 10);
#ifdef LOCKS
  for (int i = 0; i < 4; ++i) check(pthread_create(&threads[i], NULL, count, NULL) == 0, "a thread");
#endif
  for (uint64_t turn = 0; turn < 2; ++turn) {
    compute(turn);
    call(turn);
    pid_t child = fork();
    if (child == 0) {
      call(turn);
      for (uint64_t i = 0; i < N; i += 1000) check(words[i] == word(i, turn), "a child's word has changed");
      _exit(first);
    }
    int end = 0;
    check(waitpid(child, &end, 0) == child && end >> 8 == 7, "a child");
  }
#ifdef LOCKS
  for (int i = 0; i < 4; ++i) check(pthread_join(threads[i], NULL) == 0, "the end of a thread");
  check(counts[5] == 400000, "a lock");
#endif
  puts("ok");
  return 0;
}
"""
STRIPPED_BYTES = 72 << 20

LIBRARIES = os.path.join(PROGRAMS, "far_libraries")
PLUGIN = os.path.join(PROGRAMS, "libfar_plugin.so")
PLUGIN_ZEROS = 48 << 20
PLUGIN_VALUES = 16 << 20

# Python uses an array of the library, unloads it, and loads it again.
CTYPES = """
import _ctypes, ctypes, random, sys
random.seed(int(sys.argv[1]))
SIZE = 40 << 20
def load():
    library = ctypes.CDLL(sys.argv[2])
    return library, (ctypes.c_uint8 * SIZE).in_dll(library, "words")
library, words = load()
assert not any(memoryview(words).cast("B")[::4096]) and library.first() == 0
chunks = {at: random.randbytes(4096) for at in range(0, SIZE, 4096)}
for turn in range(2):
    for at, chunk in chunks.items(): ctypes.memmove(ctypes.byref(words, at), chunk, 4096)
    for at, chunk in chunks.items(): assert ctypes.string_at(ctypes.byref(words, at), 4096) == chunk
assert library.first() == chunks[0][0]
_ctypes.dlclose(library._handle)
library, words = load()
for at, chunk in chunks.items(): assert ctypes.string_at(ctypes.byref(words, at), 4096) == chunk
print("ok")
"""

# A library that loads others as its own file says.
LOADER = """
#include <dlfcn.h>
#include <stddef.h>
int load(const char* name) { return dlopen(name, RTLD_NOW) != NULL; }
"""


def seed():
    """Returns a new seed for a program, and prints it."""
    found = random.randrange(1 << 32)
    print("seed", found, flush=True)
    return str(found)


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
        for options in (["--local", "50%"], ["--local", "16M"], ["--local", "100%"],
                        ["--local", "16M", "--store", "lz4", "--memory", "512M"],
                        ["--local", "16M", "--servers", "2", "--replicas", "2"],
                        ["--local", "16M", "--apart", "network", "--memory", "512M"]):
            with self.subTest(options=options):
                output, messages, found = self.static(*options, words=[STATIC])
                self.assertEqual((output, messages), ("ok\n", []))
                self.assertGreater(found["in_use_peak_bytes"], STATIC_BYTES - (8 << 20))
                self.assertLessEqual(found["in_use_peak_bytes"], STATIC_BYTES)
                self.assertEqual(found["failures"], 0)
                if "100%" not in options:
                    least = (60 if "50%" in options else 90) << 20
                    self.assertGreater(found["bytes_out"], least)
                    self.assertGreater(found["bytes_in"], least)

    def test_variables_below_the_least_size_stay_local(self):
        _, _, found = self.static("--min-size", "20M", words=[STATIC])
        self.assertGreater(found["in_use_peak_bytes"], 63 << 20)
        self.assertLessEqual(found["in_use_peak_bytes"], 64 << 20)

    def test_a_child_has_the_variables_as_they_were_at_the_fork(self):
        for faults in ("keeper", "self"):
            with self.subTest(faults=faults):
                output, messages, _ = self.static("--faults", faults, "--local", "16M", words=[STATIC, "fork"])
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
                output, _, found = self.static("--local", "16M", words=[*wrapper, STATIC])
                self.assertEqual((output, found["processes"]), ("ok\n", 1))
                self.assertGreater(found["bytes_out"], 90 << 20)

    def test_each_child_has_far_static_variables_of_its_own(self):
        both = '"$@" & "$@" fork && wait $!'
        output, _, found = self.static("--children", "--local", "16M", words=["sh", "-c", both, "sh", STATIC])
        self.assertEqual((output, found["processes"], found["failures"]), ("ok\nok\n", 2, 0))
        self.assertEqual(found["stored_bytes"], 0)

    def test_common_and_save_of_fortran_are_far(self):
        program = self.built("gfortran", FORTRAN, "static_arrays.f90")
        output, _, found = self.static("--local", "16M", words=[program])
        self.assertEqual(output, "ok\n")
        self.assertGreater(found["in_use_peak_bytes"], 90 << 20)
        self.assertGreater(found["bytes_out"], 60 << 20)

    def test_static_arrays_of_threads_are_far(self):
        program = self.built(os.environ.get("CC", "gcc"), STREAM, "stream.c", "-fopenmp")
        for options in (["--local", "16M"], ["--local", "16M", "--store", "lz4", "--memory", "512M"]):
            with self.subTest(options=options):
                output, _, found = self.static(*options, words=[program])
                self.assertEqual(output, "ok\n")
                self.assertGreater(found["in_use_peak_bytes"], 45 << 20)
                self.assertGreater(found["bytes_out"], 30 << 20)

    def test_static_variables_of_a_file_without_symbols_are_far(self):
        program = self.built(os.environ.get("CC", "gcc"), STRIPPED, "stripped.c", "-s")
        for options in (["--local", "16M"], ["--local", "8M"], ["--local", "16M", "--faults", "self"],
                        ["--local", "16M", "--store", "lz4", "--memory", "512M"]):
            with self.subTest(options=options):
                output, _, found = self.static(*options, words=[program, seed()])
                self.assertEqual(output, "ok\n")
                self.assertGreater(found["in_use_peak_bytes"], STRIPPED_BYTES - (1 << 20))
                self.assertGreater(found["bytes_out"], STRIPPED_BYTES // 2)

    def test_locks_of_a_file_without_symbols_are_far_only_where_the_kernel_reports_its_own_faults(self):
        program = self.built(os.environ.get("CC", "gcc"), STRIPPED, "stripped.c", "-s", "-pthread", "-DLOCKS")
        for options in (["--local", "16M"], ["--local", "16M", "--faults", "self"]):
            with self.subTest(options=options):
                output, _, found = self.static(*options, words=[program, seed()])
                self.assertEqual(output, "ok\n")
                is_far = "self" not in options and faults_told(self.user) == "all"
                self.assertEqual(found["in_use_peak_bytes"] > STRIPPED_BYTES // 2, is_far)

    def test_common_and_save_of_fortran_without_symbols_are_far(self):
        program = self.built("gfortran", FORTRAN, "static_arrays.f90", "-s")
        output, _, found = self.static("--local", "16M", words=[program])
        self.assertEqual(output, "ok\n")
        self.assertGreater(found["in_use_peak_bytes"], 90 << 20)
        self.assertGreater(found["bytes_out"], 60 << 20)

    def library(self, folder, name, text, *options):
        """Builds lib<name>.so in `folder`, and returns its path."""
        source, path = os.path.join(folder, name + ".c"), os.path.join(folder, f"lib{name}.so")
        with open(source, "w") as file:
            file.write(text)
        compiler = os.environ.get("CC", "gcc")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", *options, source, "-o", path], check=True)
        return path

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        return folder.name

    def test_libraries_that_a_thread_loads_have_far_static_variables(self):
        for options in (["--local", "16M"], ["--local", "16M", "--faults", "self"], ["--local", "8M"],
                        ["--local", "16M", "--store", "lz4", "--memory", "512M"]):
            for variables in ([], ["FAR_PLUGIN_THREAD=1"]):
                with self.subTest(options=options, variables=variables):
                    output, _, found = self.static(*options, words=["env", *variables, LIBRARIES, seed(), PLUGIN])
                    self.assertEqual(output, "ok\n")
                    self.assertEqual(found["failures"], 0)
                    self.assertGreater(found["in_use_peak_bytes"], PLUGIN_ZEROS - (1 << 20))
                    self.assertLess(found["in_use_peak_bytes"], PLUGIN_ZEROS + PLUGIN_VALUES // 2)
                    self.assertGreater(found["bytes_out"], PLUGIN_ZEROS // 4)  # how soon the limit follows varies

    def test_libraries_that_are_loaded_while_there_is_one_thread_have_far_static_variables(self):
        for options in (["--local", "16M"], ["--local", "16M", "--faults", "self"]):
            with self.subTest(options=options):
                output, _, found = self.static(*options, words=[LIBRARIES, seed(), PLUGIN, "alone"])
                self.assertEqual(output, "ok\n")
                self.assertGreater(found["in_use_peak_bytes"], PLUGIN_ZEROS + PLUGIN_VALUES - (1 << 20))
                self.assertGreater(found["bytes_out"], PLUGIN_ZEROS // 2)

    def test_libraries_that_python_loads_have_far_static_variables(self):
        text = "unsigned char words[40 << 20]; int first(void) { return words[0]; }"
        for strip in ([], ["-s"]):
            library = self.library(self.folder(), "words", text, *strip)
            for options in (["--local", "16M"], ["--local", "16M", "--faults", "self"]):
                with self.subTest(options=options, strip=strip):
                    output, _, found = self.static("--min-size", "2M", *options,
                                                   words=[PYTHON, "-c", CTYPES, seed(), library])
                    self.assertEqual(output, "ok\n")
                    self.assertGreater(found["in_use_peak_bytes"], 39 << 20)
                    self.assertGreater(found["bytes_out"], 20 << 20)

    def test_libraries_are_found_as_the_file_says_that_loads_them(self):
        folder = self.folder()
        deep = os.path.join(folder, "deep")
        os.mkdir(deep)
        large = "char large[20 << 20]; int touch(void) { return large[5]++; }"
        self.library(deep, "deep", large)
        self.library(deep, "other", large)
        for tags in ("--enable-new-dtags", "--disable-new-dtags"):
            loader = self.library(folder, "loader", LOADER, f"-Wl,{tags},-rpath,$ORIGIN/deep")
            for name in ("libdeep.so", "$ORIGIN/deep/libother.so", "${ORIGIN}/deep/libother.so", "libc.so.6"):
                with self.subTest(tags=tags, name=name):
                    code = f"import ctypes; assert ctypes.CDLL({loader!r}).load({name.encode()!r}) == 1"
                    _, _, found = self.static(words=[PYTHON, "-c", code])
                    self.assertEqual(found["in_use_peak_bytes"] > 19 << 20, name != "libc.so.6")
            code = f"import ctypes; assert ctypes.CDLL({loader!r}).load(b'libnone.so') == 0"
            self.static(words=[PYTHON, "-c", code])

    def test_children_that_load_libraries_have_far_static_variables_of_their_own(self):
        output, _, found = self.static("--children", "--local", "16M",
                                       words=["sh", "-c", '"$@" & "$@" && wait $!', "sh", LIBRARIES, seed(), PLUGIN])
        self.assertEqual((output, found["processes"], found["failures"]), ("ok\nok\n", 2, 0))
        self.assertEqual(found["stored_bytes"], 0)


class StaticMemoryOfAnOrdinaryUser(StaticMemory):
    user = NOBODY


if __name__ == "__main__":
    unittest.main()
