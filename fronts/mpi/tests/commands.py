#!/usr/bin/env python3
"""mpicc, mpicxx, mpiexec, and what the `tonari` command does for programs that use MPI."""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness.jobs import PATIENCE, TONARI, JobTest, eventually, has_sanitizer

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

    def framed(self, code, *options, name="program"):
        return self.built(FRAME.replace("PROGRAM", code), *options, name=name)

    def start_mpiexec(self, *arguments, **options):
        return self.start(*arguments, command=(str(MPIEXEC),), **options)

    def mpiexec(self, *arguments, **options):
        """Runs mpiexec to its end; returns the exit status, the output's lines, sorted, and the error output."""
        status, output, error = self.start_mpiexec(*arguments, **options).end()
        return status, sorted(output.splitlines()), error


class Compiling(CommandTest):
    def test_show_prints_the_command_instead_of_executing_it(self):
        for show in ("-show", "-showme", "--showme"):
            words = shlex.split(self.command("mpicc", show, "-c", "there is none.c", TONARI_MPI_CC="gcc"))
            self.assertEqual(words[0], "gcc")
            self.assertIn("-c", words)
        words = shlex.split(self.command("mpicxx", "-show", "a.cpp", "-o", "a", TONARI_MPI_CXX="g++"))
        self.assertEqual((words[0], words[2:5]), ("g++", ["a.cpp", "-o", "a"]))
        self.assertIn("-lmpi_abi", words)

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


class Starting(CommandTest):
    def refused(self, *arguments):
        """Returns the line with which mpiexec refuses its arguments."""
        status, output, error = self.mpiexec(*arguments)
        self.assertEqual((status, output, len(error.splitlines())), (2, [], 1), error)
        return error.strip()

    def test_the_number_of_ranks(self):
        program = self.built(WHO)
        for option in (["-n", 2], ["-np", 2], ["--np", 2], ["--ranks", 2], ["--ranks=2"]):
            self.assertEqual(self.mpiexec(*option, program)[1:], (["0 of 2 program 0", "1 of 2 program 0"], ""))
        for number in ("0", "-1", "x", ""):
            self.assertEqual(self.refused("-n", number, program),
                             f"mpiexec: -n needs a number of ranks from 1 on, not '{number}'")

    def test_arguments_reach_the_program_unchanged(self):
        program = self.built(WHO)
        self.assertEqual(self.mpiexec("-n", 1, program, "-n", "a b", "", "--env=A=B")[1],
                         ["0 of 1 program 0 <-n> <a b> <> <--env=A=B>"])

    def test_variables(self):
        program = self.built(WHO)
        for option in (["-env", "GIVEN", "a b"], ["-genv", "GIVEN", "a b"], ["-x", "GIVEN=a b"], ["--env=GIVEN=a b"],
                       ["--env", "GIVEN=a b"]):
            self.assertEqual(self.mpiexec("-n", 1, *option, program), (0, ["0 of 1 program 0 GIVEN=a b"], ""))
        here = self.environment(GIVEN="here")
        for option in (["-x", "GIVEN"], ["-envlist", "GIVEN"], ["-genvlist", "HOME,GIVEN"]):
            self.assertEqual(self.mpiexec("-n", 1, *option, program, env=here)[:2], (0, ["0 of 1 program 0 GIVEN=here"]))
        self.assertEqual(self.refused("-env", "GIVEN"), "mpiexec: -env needs a name and a value")
        self.assertRegex(self.refused("-x", "GIVEN", program), "--env.*GIVEN")

    def test_several_programs_in_one_job(self):
        program = self.built(WHO)
        got = self.mpiexec("-n", 1, program, "a b", ":", "-n", 2, "-env", "GIVEN", "1", program, ":", "-np", 1, program,
                           "x", "")
        self.assertEqual(got, (0, ["0 of 4 program 0 <a b>", "1 of 4 program 1 GIVEN=1", "2 of 4 program 1 GIVEN=1",
                                   "3 of 4 program 2 <x> <>"], ""))
        self.assertEqual(self.refused("-n", 1, program, ":", program),
                         "mpiexec: with several programs, each needs a number of ranks: -n N")
        self.assertEqual(self.refused("-n", 1, program, ":"), "mpiexec: no program was given")

    def test_each_of_several_programs_has_its_own_variables(self):
        program = self.built(WHO)
        for option in (["-env", "GIVEN"], ["-x"], ["--env"]):
            mine = lambda value: [*option, value] if len(option) == 2 else [*option, f"GIVEN={value}"]
            got = self.mpiexec("-genv", "GIVEN", "all", "-n", 1, *mine("a b"), program, ":",
                               "-n", 1, *mine("c=d"), program, ":", "-n", 1, program)
            self.assertEqual(got, (0, ["0 of 3 program 0 GIVEN=a b", "1 of 3 program 1 GIVEN=c=d",
                                       "2 of 3 program 2 GIVEN=all"], ""))
        self.assertEqual(self.mpiexec("-n", 1, program, ":", "-n", 1, "-genv", "GIVEN", "all", program)[1],
                         ["0 of 2 program 0 GIVEN=all", "1 of 2 program 1 GIVEN=all"])
        for name in ("UID", "not a name"):
            self.assertEqual(self.refused("-n", 1, "-env", name, "1", program, ":", "-n", 1, program),
                             f"mpiexec: with several programs, -env cannot set {name}; use -genv, which sets it for "
                             "all")

    def test_the_directory(self):
        self.built(WHO)
        self.assertEqual(self.mpiexec("-wdir", self.folder, "-n", 1, "./program")[1], ["0 of 1 program 0"])
        for none in ("none", "program", "-", ""):
            for words in (["-n", 1, "./program"], ["-n", 1, "true", ":", "-n", 1, "./program"]):
                self.assertEqual(self.refused("-wdir", none, *words),
                                 f"mpiexec: -wdir: cannot change to the directory {none}".strip())

    def test_each_of_several_programs_has_its_own_directory(self):
        self.built(WHO)
        (self.folder / "with space").mkdir()
        shutil.copy(self.folder / "program", self.folder / "with space" / "other")
        here = ["-wdir", self.folder]
        got = self.mpiexec("-n", 1, *here, "./program", ":", "-n", 1, "-wdir", self.folder / "with space", "./other")
        self.assertEqual(got, (0, ["0 of 2 program 0", "1 of 2 program 1"], ""))
        self.assertEqual(self.mpiexec("-n", 1, *here, "pwd", ":", "-n", 1, "pwd")[1],
                         sorted([str(self.folder), os.getcwd()]))

    def test_a_missing_program_among_several_is_refused_before_anything_starts(self):
        (self.folder / "text").write_text("")
        (self.folder / "folder").mkdir()
        for name, status, text in (("./none", 127, f"there is no file ./none (the directory is {self.folder})"),
                                   ("tonari-none", 127, "tonari-none is not in PATH; write a program elsewhere with "
                                                        "its folder, as in ./tonari-none"),
                                   ("./text", 126, "./text is not executable; if it is a program: chmod +x ./text"),
                                   ("./folder", 126, "./folder is a folder, not a program")):
            wrong = ["-n", 1, "-wdir", self.folder, name]
            started = ["-n", 1, "touch", self.folder / "started"]
            for words in ([*wrong, ":", *started], [*started, ":", *wrong]):
                self.assertEqual(self.mpiexec(*words), (status, [], f"mpiexec: {text}\n"))
        self.assertFalse((self.folder / "started").exists())

    def with_open_mpi(self):
        """Makes an mpirun of Open MPI that prints its arguments, behind tonari's in PATH. Returns the environment."""
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "mpirun").write_text("#!/bin/sh\n[ \"$1\" = --version ] && exec echo 'mpirun (Open MPI) 5.0.11'\n"
                                      "printf '%s\\n' \"$@\"\n")
        (tools / "mpirun").chmod(0o755)
        root_may = {f"{maker}_ALLOW_RUN_AS_ROOT{end}": "1" for maker in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}
        return self.environment(PATH=f"{COMMANDS}:{tools}:{os.environ['PATH']}", **root_may)

    def test_hosts_are_passed_to_the_launcher(self):
        (self.folder / "hosts").write_text("# all\none slots=2\n\ntwo:3\n")
        here = self.with_open_mpi()
        for option in (["-host", "one,two"], ["-hosts", "one:2,two:3"], ["-H", "one,two"], ["--hosts=one,two"],
                       ["-f", self.folder / "hosts"], ["-hostfile", self.folder / "hosts"],
                       ["-machinefile", self.folder / "hosts"]):
            status, output, error = self.start_mpiexec(*option, "-n", 5, "./prog", "x", env=here).end()
            self.assertEqual((status, error), (0, ""))
            words = output.splitlines()
            self.assertEqual(words[words.index("-n") + 1], "5")
            self.assertEqual(words[words.index("--host") + 1], "one:3,two:2")
            self.assertEqual(words[-2:], ["./prog", "x"])
        self.assertEqual(self.refused("-hostfile", "none", "./prog"), "mpiexec: cannot read the file of hosts none")

    def test_several_programs_share_one_list_of_hosts(self):
        here = self.with_open_mpi()
        job = self.start_mpiexec("-host", "one,two", "-n", 2, "./a", ":", "-H", "one:2,two", "-n", 2, "./b", env=here)
        status, output, error = job.end()
        self.assertEqual((status, error), (0, ""))
        self.assertEqual(output.count("one:2,two:2"), 1)
        self.assertEqual(self.refused("-host", "one", "-n", 1, "./a", ":", "-H", "two:4", "-n", 1, "./b"),
                         "mpiexec: -H two: -host has named other hosts, one; the programs of a job share one list of "
                         "hosts")
        self.assertEqual(self.refused("-host", "", "-n", 1, "./a"), "mpiexec: -host names no host")

    def test_each_option_of_tonari_run_works_with_two_dashes(self):
        program = self.built(WHO)
        shown = subprocess.run([TONARI, "run", "--help"], capture_output=True, text=True, check=True).stdout
        values = {"--ranks": "1", "--bind": "none", "--apart": "network", "--network": "tcp", "--env": "GIVEN=1",
                  "--timeout": "100", "--tag-output": None, "--stats": None, "--help": None, "--hosts": "."}
        self.assertEqual(set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", shown, re.MULTILINE)), set(values))
        for option, value in values.items():
            if option in ("--hosts", "--help"):
                continue
            more = ["--apart", "network"] if option == "--network" else []
            for words in ([option], ) if value is None else ([option, value], [f"{option}={value}"]):
                with self.subTest(words=words):
                    status, output, error = self.mpiexec("-n", 1, *more, *words, program)
                    self.assertEqual((status, len(output)), (0, 1), error)

    def test_wrong_command_lines(self):
        self.assertEqual(self.refused("-frob", "./prog"), "mpiexec: unknown option -frob; mpiexec --help lists what "
                                                          "there is")
        self.assertEqual(self.refused("--frob", "./prog"), "mpiexec: unknown option --frob; mpiexec --help lists what "
                                                           "there is")
        self.assertIn("--frob", self.refused("--frob=1", "true"))
        self.assertEqual(self.refused("-n", 2), "mpiexec: no program was given")
        for option in ("-n", "-host", "-f", "-env", "-x", "-wdir", "-bind-to", "-timeout", "--apart", "-initial-errhandler"):
            self.assertRegex(self.refused(option), f"^mpiexec: {option} needs ")
        self.assertIn("takes core or none", self.refused("-bind-to", "socket", "./prog"))
        status, output, error = self.mpiexec()
        self.assertEqual((status, output, error.splitlines()[0][:14]), (2, [], "Usage: mpiexec"))
        self.assertEqual(self.mpiexec("-help")[2], "")

    def linked_with(self, soname):
        """Returns a program that is linked with an empty library of this name."""
        (self.folder / "empty.c").write_text("")
        (self.folder / "main.c").write_text("int main(void) { return 0; }\n")
        for words in (["-shared", "empty.c", f"-Wl,-soname,{soname}", "-o", soname],
                      ["main.c", "-o", f"with {soname}", "-Wl,--no-as-needed", soname, f"-Wl,-rpath,{self.folder}"]):
            subprocess.run(["cc", *words], cwd=self.folder, check=True)
        return self.folder / f"with {soname}"

    def test_a_program_of_another_mpi_is_started_with_a_warning(self):
        ours = self.built(WHO)
        for soname in ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_cxx.so.40"):
            program = self.linked_with(soname)
            warning = (f"mpiexec: warning: {program} is linked with another MPI ({soname}), by which each rank is a job "
                       f"of its own; compile it with tonari's mpicc, {COMMANDS}/mpicc\n")
            for words in (["-n", 2, program], [program], ["-n", 1, "true", ":", "-n", 1, program]):
                self.assertEqual(self.mpiexec(*words), (0, [], warning))
            self.assertEqual(self.mpiexec("-n", 1, program), (0, [], ""))
            in_path = self.environment(PATH=f"{self.folder}:{os.environ['PATH']}")
            self.assertIn("is linked with another MPI", self.mpiexec("-n", 2, program.name, env=in_path)[2])
        for program in (self.linked_with("libmpi_abi.so.1"), self.linked_with("libmpin.so"), "true"):
            self.assertEqual(self.mpiexec("-n", 2, program), (0, [], ""))
        self.assertEqual(self.mpiexec("-n", 2, ours), (0, ["0 of 2 program 0", "1 of 2 program 0"], ""))
        # Only the names of libraries count, and only in programs.
        with open(ours, "ab") as file:
            file.write(b"see libmpi.so.40\0")
        self.assertEqual(self.mpiexec("-n", 2, ours)[2], "")
        script = self.folder / "script"
        script.write_text("#!/bin/sh\nexit 0\n\0libmpi.so.40\0")
        script.chmod(0o755)
        self.assertEqual(self.mpiexec("-n", 2, script)[2], "")

    def test_a_program_started_by_a_foreign_launcher_is_refused(self):
        program = self.built(WHO)
        for variable, launcher in (("PMI_SIZE", "MPICH's or Intel MPI's mpiexec"),
                                   ("OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"),
                                   ("MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun"),
                                   ("SLURM_STEP_NUM_TASKS", "srun")):
            alone = lambda size: subprocess.run([program], capture_output=True, text=True, check=False,
                                                env=self.environment(**{variable: size}))
            done = alone("4")
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertRegex(done.stderr, rf"MPI_Init failed .*{launcher} started it as one of 4 processes "
                                          rf"\({variable}\).*tonari's mpiexec.*mpirun of Open MPI 4\.1 or 5")
            self.assertEqual(alone("1").stdout, "0 of 1 program 0\n")
            started = self.mpiexec("-n", 1, program, env=self.environment(**{variable: "4"}))
            self.assertEqual(started, (0, ["0 of 1 program 0"], ""))

    def test_a_program_in_a_batch_script_of_slurm_is_a_job_of_one_rank(self):
        of_script = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
        done = subprocess.run([self.built(WHO)], capture_output=True, text=True, check=False,
                              env=self.environment(**of_script))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "0 of 1 program 0\n", ""))

    def test_ctrl_c_ends_all_ranks_and_leaves_nothing_behind(self):
        before = set(os.listdir("/dev/shm"))
        program = self.framed('puts("ready"); fflush(stdout);'
                              "MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);")
        for words in (["-n", 3, program], ["-n", 1, program, ":", "-n", 2, program]):
            job = self.start_mpiexec(*words)
            job.output.wait_for("ready", 3)
            job.signal(signal.SIGINT)
            self.assertEqual(job.end()[0], 128 + signal.SIGINT)
        self.assertEqual({name for name in set(os.listdir("/dev/shm")) - before if "tonari" in name}, set())

    def test_the_initial_error_handler(self):
        program = self.built("""
            #include <mpi.h>
            #include <stdio.h>
            int main(int argc, char** argv) {
              int before = MPI_Comm_free(NULL), value, found, length = 64;
              char text[64] = "none";
              MPI_Init(&argc, &argv);
              MPI_Info_get_string(MPI_INFO_ENV, "mpi_initial_errhandler", &length, text, &found);
              int world = MPI_Comm_remote_size(MPI_COMM_WORLD, &value), self = MPI_Info_free(NULL);
              MPI_Finalize();
              printf("%d %d %d %d %s\\n", before != 0, world != 0, self != 0, MPI_Info_free(NULL) != 0, text);
              return 0;
            }
        """)
        for dash in ("-", "--"):
            self.assertEqual(self.mpiexec("-n", 1, f"{dash}initial-errhandler", "mpi_errors_return", program),
                             (0, ["1 1 1 1 mpi_errors_return"], ""))
        for name, shown in (("mpi_errors_abort", "MPI_ERRORS_ABORT"), ("mpi_errors_are_fatal", "MPI_ERRORS_ARE_FATAL")):
            status, output, error = self.mpiexec("-n", 1, "-initial-errhandler", name, program)
            self.assertEqual((status, output), (1, []))
            self.assertIn(f"is {shown}", error)
        self.assertEqual(self.refused("-initial-errhandler", "MPI_ERRORS_RETURN", program),
                         "mpiexec: -initial-errhandler takes mpi_errors_are_fatal, mpi_errors_abort or "
                         "mpi_errors_return, not 'MPI_ERRORS_RETURN'")
        wrong = self.environment(TONARI_MPI_INITIAL_ERRHANDLER="x")
        self.assertIn("the initial error handler is x (TONARI_MPI_INITIAL_ERRHANDLER): it must be",
                      self.mpiexec("-n", 1, self.built(WHO, name="who"), env=wrong)[2])

    def test_a_rank_that_exits_without_mpi_finalize_is_named(self):
        program = self.framed("if (rank == 1) exit(0);")
        status, output, error = self.mpiexec("-n", 2, program)
        self.assertEqual((status, output), (1, []))
        self.assertRegex(error, r"tonari: rank 1 \(pid \d+, host \S+\) exited with status 0 without leaving the job: .*"
                                r"call MPI_Finalize")


class Telling(CommandTest):
    def test_a_shell_can_evaluate_tonari_env(self):
        script = f'eval "$({TONARI} env)"; for name in mpicc mpicxx mpiexec mpirun; do command -v $name; done; echo "$MPI_HOME"'
        told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(told, [*(str(COMMANDS / name) for name in ("mpicc", "mpicxx", "mpiexec", "mpirun")),
                                str(COMMANDS.parent)])

    def test_info_lists_the_functions_that_are_not_supported(self):
        shown = subprocess.run([TONARI, "info", "--mpi"], capture_output=True, text=True, check=True).stdout
        listed = shown.splitlines()[1:]
        told = json.loads(subprocess.run([TONARI, "info", "--mpi", "--json"], capture_output=True, text=True,
                                         check=True).stdout)
        self.assertIn(f"of which these {len(listed)} are not supported", shown)
        self.assertIn("  MPI_Comm_spawn", listed)
        self.assertNotIn("  MPI_Send", listed)
        self.assertEqual([line.strip() for line in listed], (told.get("mpi") or told)["unsupported"])

    def test_a_function_that_is_not_supported_ends_the_job_with_its_name(self):
        program = self.framed("MPI_Comm other; MPI_Comm_spawn(\"x\", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, "
                              "MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);")
        status, output, error = self.mpiexec("-n", 1, program)
        self.assertEqual((status, output), (1, []))
        self.assertIn("MPI_Comm_spawn", error)

    def test_status_shows_the_functions_of_a_program_that_hangs(self):
        program = self.framed("MPI_Recv(&number, 1, MPI_INT, 1 - rank, 7 + rank, MPI_COMM_WORLD, MPI_STATUS_IGNORE);")
        job = self.start_mpiexec("-n", 2, program)
        status = lambda: subprocess.run([TONARI, "status", str(job.pid)], capture_output=True, text=True,
                                        check=False).stdout
        shown = eventually(lambda: re.search(r"(?s).*a circle: .*", status()), "the circle")[0]
        self.assertRegex(shown, r"\n +0 +\d+ +running +MPI_Recv from 1, tag 7 +\d+\.\d s ")
        self.assertRegex(shown, r"\n +1 +\d+ +running +MPI_Recv from 0, tag 8 +\d+\.\d s ")
        job.signal(signal.SIGTERM)
        job.end()

    def test_statistics_show_the_depths_of_the_queues(self):
        # Seven messages wait for a receive, because the message behind them is received first; five receives wait for
        # a message, because their messages are sent only after a barrier.
        program = self.framed("""
          int numbers[5];
          MPI_Request requests[5];
          if (rank == 1) MPI_Irecv(&number, 1, MPI_INT, 0, 100, MPI_COMM_WORLD, &requests[0]);
          MPI_Barrier(MPI_COMM_WORLD);
          if (rank == 0) {
            for (int i = 0; i < 7; ++i) MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
            MPI_Send(&number, 1, MPI_INT, 1, 100, MPI_COMM_WORLD);
          } else {
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
            for (int i = 6; i >= 0; --i) MPI_Recv(&number, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < 5; ++i) MPI_Irecv(&numbers[i], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &requests[i]);
          }
          MPI_Barrier(MPI_COMM_WORLD);
          for (int i = 0; i < 5 && rank == 0; ++i) MPI_Send(&i, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
          if (rank == 1) MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
        """)
        status, output, error = self.mpiexec("-n", 2, "--stats", program)
        self.assertEqual((status, output), (0, []))
        lines = error.splitlines()
        # A column's name is at the right end of its numbers. "max" follows the column that it is the maximum of.
        names = [(match.group(), match.end()) for match in re.finditer(r"\S+( \S+)*", lines[0])]
        ranks = [dict(zip([f"{names[i - 1][0]} max" if name == "max" else name for i, (name, _) in enumerate(names)],
                          line.split())) for line in lines[1:3]]
        self.assertEqual([rank["sent"] for rank in ranks], ["13", "0"])
        self.assertEqual((ranks[1]["posted"], ranks[1]["posted max"]), ("0", "5"), error)
        self.assertEqual((ranks[1]["unexpected"], ranks[1]["unexpected max"]), ("0", "7"), error)


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
