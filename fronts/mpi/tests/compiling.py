#!/usr/bin/env python3
"""mpicc, mpicxx, mpifort; tools that are linked or loaded before MPI."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unittest

from command_test import COMMANDS, MPIEXEC, WHO, CommandTest, setUpModule  # noqa: F401
from harness.jobs import PATIENCE

WHO_CXX = r"""
#include <mpi.h>
#include <iostream>
#include <vector>
int main() {
  MPI_Init(nullptr, nullptr);
  std::vector<int> ranks(2);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, MPI_COMM_WORLD);
  if (rank == 0) std::cout << ranks[0] << ' ' << ranks[1] << '\n';
  MPI_Finalize();
}
"""

SEND_THREE = """
  for (int i = 0; i < 3; ++i) {
    if (rank == 0) MPI_Send(&i, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 1) printf("received %d\\n", number);
"""

# A tool that counts sends.
TOOL = r"""
#include <mpi.h>
#include <stdio.h>
static int sends = 0;
int MPI_Send(const void* data, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  ++sends;
  return PMPI_Send(data, count, type, dest, tag, comm);
}
int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("the tool saw %d sends\n", sends);
  fflush(stdout);
  return PMPI_Finalize();
}
"""


def libraries_of_tonari(program):
    """Returns the names of the shared libraries of tonari that a program needs."""
    dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"NEEDED.*\[(lib(?:mpi|tonari).*)\]", dynamic)


class Compiling(CommandTest):
    def test_show_prints_the_command_instead_of_executing_it(self):
        for show in ("-show", "-showme", "--showme"):
            words = shlex.split(self.command("mpicc", show, "-c", "there is none.c", TONARI_MPI_CC="gcc"))
            self.assertEqual(words[0], "gcc")
            self.assertIn("-c", words)
        words = shlex.split(self.command("mpicxx", "-show", "a.cpp", "-o", "a", TONARI_MPI_CXX="g++"))
        self.assertEqual((words[0], words[2:5]), ("g++", ["a.cpp", "-o", "a"]))
        self.assertIn("-lmpi_abi", words)

    def test_show_prints_words_that_a_shell_reads_as_they_are(self):
        given = ['-DNAME="a b"', "-DQUOTE='", "$HOME", "", "a.c"]
        shown = self.command("mpicc", "-show", *given, TONARI_MPI_CC="ccache gcc")
        self.assertEqual(shlex.split(shown)[:2] + shlex.split(shown)[3:8], ["ccache", "gcc", *given])
        program = self.built('#include <stdio.h>\nint main(void) { puts(TEXT); return 0; }\n', '-DTEXT="a  b"')
        program.unlink()
        shown = self.command("mpicc", "-show", "program.c", "-o", "program", '-DTEXT="a  b"')
        subprocess.run(["sh", "-c", shown], cwd=self.folder, check=True)
        self.assertEqual(subprocess.run([program], capture_output=True, text=True, check=True).stdout, "a  b\n")

    def test_each_part_of_the_command_can_be_asked_for(self):
        ask = lambda *words: self.command("mpicc", *words, TONARI_MPI_CC="gcc").strip()
        include, lib = ask("-showme:incdirs"), ask("-showme:libdirs")
        self.assertTrue(pathlib.Path(include, "mpi.h").exists())
        self.assertTrue(pathlib.Path(lib, "libmpi_abi.so").exists())
        for dash in ("-", "--"):
            self.assertEqual(ask(f"{dash}showme:compile"), f"-I{include}")
            self.assertEqual(ask(f"{dash}showme:link"), f"-L{lib} -Wl,-rpath,{lib} -lmpi_abi")
            self.assertEqual(ask(f"{dash}showme:libs"), "mpi_abi")
            self.assertEqual(ask(f"{dash}showme:command"), "gcc")
            self.assertRegex(ask(f"{dash}showme:version"), r"^tonari \d+\.\d+\.\d+, MPI 5\.0$")
        for between in ("-", "_"):  # MPICH's, with the compiler's name
            self.assertEqual(ask(f"-compile{between}info"), f"gcc {ask('-showme:compile')}")
            self.assertEqual(ask(f"-link{between}info"), f"gcc {ask('-showme:link')}")

    def test_c_programs_run_compiled_in_one_step_or_in_two(self):
        program = self.built(WHO)
        self.assertEqual(self.mpiexec("-n", 1, program), (0, ["0 of 1 program 0"], ""))
        self.command("mpicc", "-c", "program.c", "-o", "program.o")
        self.command("mpicc", "program.o", "-o", "linked")
        self.assertEqual(self.mpiexec("-n", 1, self.folder / "linked"), (0, ["0 of 1 program 0"], ""))

    def test_cxx_programs_run(self):
        for compiler in ("mpicxx", "mpic++", "mpiCC"):
            program = self.built(WHO_CXX, name=compiler, compiler=compiler)
            self.assertEqual(self.mpiexec("-n", 2, program), (0, ["0 1"], ""))

    def test_another_compiler_can_be_named(self):
        (self.folder / "mine").write_text('#!/bin/sh\necho mine "$@"\n')
        (self.folder / "mine").chmod(0o755)
        mine = self.folder / "mine"
        self.assertRegex(self.command("mpicc", f"-cc={mine}", "a.c"), r"^mine -I\S+ a\.c -L\S+ \S+ -lmpi_abi\n$")
        self.assertRegex(self.command("mpicxx", f"-cxx={mine}", "-c", "a.c"), r"^mine -I\S+ -c a\.c\n$")
        for variable in ("TONARI_MPI_CC", "MPICH_CC", "OMPI_CC"):
            self.assertRegex(self.command("mpicc", "a.c", **{variable: mine}), "^mine ")

    def test_a_compiler_that_is_not_there_is_named(self):
        for name, option in (("mpicc", "-cc=nosuch"), ("mpicxx", "-cxx=nosuch -g")):
            self.assertEqual(self.command(name, option, "a.c", status=127),
                             f"{name}: there is no compiler nosuch; -cc, -cxx, TONARI_MPI_CC and TONARI_MPI_CXX name "
                             "another\n")

    def test_warnings_of_a_program_are_not_about_the_header(self):
        self.built("""
            #include <mpi.h>
            int main(int argc, char** argv) {
              MPI_Init(&argc, &argv);
              MPI_Request request = MPI_REQUEST_NULL;
              MPI_Wait(&request, MPI_STATUS_IGNORE);
              MPI_Allreduce(MPI_IN_PLACE, &argc, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
              MPI_Comm comm = MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD));
              return MPI_Barrier(comm) + MPI_Finalize();
            }
        """, "-Werror", "-Wall", "-Wextra", "-pedantic", "-Wold-style-cast", "-Wuseless-cast", "-Wconversion",
                   "-Wzero-as-null-pointer-constant", compiler="mpicxx")
        (self.folder / "wrong.cpp").write_text("#include <mpi.h>\nint* pointer = (int*)8;\n")
        self.assertIn("old-style-cast", self.command("mpicxx", "-Werror", "-Wold-style-cast", "-c", "wrong.cpp",
                                                     status=1))

    def test_questions_to_the_compiler_reach_it(self):
        self.assertEqual(self.command("mpicc", "--version", TONARI_MPI_CC="gcc"),
                         subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout)

    def test_errors_of_the_compiler_are_passed_on(self):
        (self.folder / "wrong.c").write_text("#include <mpi.h>\nint main(void) { return MPI_Sned(); }\n")
        self.assertIn("MPI_Sned", self.command("mpicc", "-Werror", "wrong.c", status=1))
        self.assertIn("Usage: mpicc", self.command("mpicc", status=2))

    def test_mpifort_says_what_to_do_instead(self):
        for name in ("mpifort", "mpif77", "mpif90"):
            self.assertRegex(self.command(name, "a.f90", status=1),
                             rf"(?s)^{name}: tonari has no Fortran interface.*\n  1\. download .*\n  2\. .*\n  3\. ")

    def test_cmake_finds_it_in_the_path(self):
        if shutil.which("cmake") is None:
            self.skipTest("there is no cmake")
        (self.folder / "CMakeLists.txt").write_text("""
            cmake_minimum_required(VERSION 3.20)
            project(check C CXX)
            find_package(MPI REQUIRED)
            add_executable(in_c who.c)
            target_link_libraries(in_c PRIVATE MPI::MPI_C)
            add_executable(in_cxx who.cpp)
            target_link_libraries(in_cxx PRIVATE MPI::MPI_CXX)
            file(WRITE ${CMAKE_BINARY_DIR}/mpiexec ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG})
            file(WRITE ${CMAKE_BINARY_DIR}/version ${MPI_C_VERSION})
        """)
        (self.folder / "who.c").write_text(WHO)
        (self.folder / "who.cpp").write_text(WHO_CXX)
        path = f"{COMMANDS}:{os.environ['PATH']}"
        for command in ("cmake -B build -S .", "cmake --build build"):
            done = subprocess.run(command.split(), cwd=self.folder, env=self.environment(PATH=path), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
        build = self.folder / "build"
        self.assertEqual((build / "mpiexec").read_text(), f"{MPIEXEC}-n")
        self.assertEqual((build / "version").read_text(), "5.0")
        self.assertEqual(self.mpiexec("-n", 1, build / "in_c"), (0, ["0 of 1 program 0"], ""))
        self.assertEqual(self.mpiexec("-n", 2, build / "in_cxx"), (0, ["0 1"], ""))


class Tools(CommandTest):
    wanted = (0, ["received 2", "the tool saw 3 sends"], "")

    def test_a_tool_can_be_loaded_before_mpi(self):
        self.built(TOOL, "-shared", "-fPIC", name="tool.so")
        program = self.framed(SEND_THREE)
        self.assertEqual(self.mpiexec("-n", 2, program), (0, ["received 2"], ""))
        self.assertEqual(self.mpiexec("-n", 2, "-env", "LD_PRELOAD", self.folder / "tool.so", program), self.wanted)

    def test_a_tool_can_be_linked_before_mpi(self):
        (self.folder / "tool.c").write_text(TOOL)
        self.command("mpicc", "-c", "tool.c")
        subprocess.run(["ar", "rc", "libtool.a", "tool.o"], cwd=self.folder, check=True)
        self.built(TOOL, "-shared", "-fPIC", name="libshared.so")
        for name, tool in (("object", ["tool.o"]), ("archive", ["libtool.a"]), ("search", ["-L.", "-ltool"]),
                           ("shared", ["libshared.so", f"-Wl,-rpath,{self.folder}"])):
            with self.subTest(tool=name):
                self.assertEqual(self.mpiexec("-n", 2, self.framed(SEND_THREE, *tool, name=name)), self.wanted)
            if name == "shared":  # it needs the shared library of MPI
                continue
            with self.subTest(tool=name, mpi="static"):
                program = self.framed(SEND_THREE, *tool, "-static-mpi", name=f"{name}-static")
                self.assertEqual(libraries_of_tonari(program), [])
                self.assertEqual(self.mpiexec("-n", 2, program), self.wanted)


class Static(CommandTest):
    def test_programs_that_contain_mpi_run(self):
        for compiler, text, ranks, wanted in (("mpicc", WHO, 1, ["0 of 1 program 0"]), ("mpicxx", WHO_CXX, 2, ["0 1"])):
            for option in ("-static-mpi", "-static_mpi"):
                program = self.built(text, option, compiler=compiler)
                self.assertEqual(libraries_of_tonari(program), [])
                self.assertEqual(self.mpiexec("-n", ranks, program), (0, wanted, ""))
            self.assertEqual(self.mpiexec("-n", ranks, "--apart", "network", program), (0, wanted, ""))
            self.assertEqual(libraries_of_tonari(self.built(text, compiler=compiler)), ["libmpi_abi.so.1"])

    def test_the_c_library_cannot_be_linked_into_programs(self):
        (self.folder / "who.c").write_text(WHO)
        for option in ("-static", "--static", "-static-pie"):
            self.assertRegex(self.command("mpicc", option, "who.c", status=1), rf"^mpicc: {option}: .* -static-mpi")
            self.command("mpicc", option, "-c", "who.c")


if __name__ == "__main__":
    unittest.main()
