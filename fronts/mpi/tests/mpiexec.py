#!/usr/bin/env python3
"""mpiexec: its options, several programs in one job, other MPIs' programs and launchers."""

import os
import re
import shutil
import signal
import subprocess
import unittest

from command_test import COMMANDS, WHO, CommandTest, setUpModule  # noqa: F401
from harness.jobs import TONARI


class Starting(CommandTest):
    def refused(self, *arguments):
        """Returns the line with which mpiexec refuses its arguments."""
        status, output, error = self.mpiexec(*arguments)
        self.assertEqual((status, output, len(error.splitlines())), (2, [], 1), error)
        return error.strip()

    def test_the_number_of_ranks(self):
        program = self.built(WHO)
        for option in (["-n", 2], ["-np", 2], ["-c", 2], ["--np", 2], ["--ranks", 2], ["--ranks=2"], ["--np=2"],
                       ["-ppn", 2], ["--map-by", "ppr:2:node"]):
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
                       ["--env", "GIVEN=a b"], ["-env", "GIVEN=a b"], ["-genv", "GIVEN=a b"]):
            self.assertEqual(self.mpiexec("-n", 1, *option, program), (0, ["0 of 1 program 0 GIVEN=a b"], ""))
        here = self.environment(GIVEN="here")
        for option in (["-x", "GIVEN"], ["-envlist", "GIVEN"], ["-genvlist", "HOME,GIVEN"]):
            self.assertEqual(self.mpiexec("-n", 1, *option, program, env=here)[:2], (0, ["0 of 1 program 0 GIVEN=here"]))
        self.assertEqual(self.refused("-env", "GIVEN"), "mpiexec: -env needs a name and a value")
        self.assertEqual(self.mpiexec("-n", 1, "-x", "GIVEN", program),
                         (0, ["0 of 1 program 0"], "mpiexec: warning: GIVEN is not set here, so it is not passed on\n"))

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

    def test_ranks_of_a_host_are_limited(self):
        here = self.with_open_mpi()
        for words, hosts in ((["-ppn", 2], "one:2,two:2,three:2"), (["-n", 4, "-ppn", 2], "one:2,two:2"),
                             (["-n", 3, "--map-by", "ppr:2:node"], "one:2,two:1"),
                             (["-n", 3, "-perhost", 4], "one:3"), (["-n", 9, "--npernode", 2], "one:3,two:3,three:3")):
            status, output, error = self.start_mpiexec("-host", "one,two,three", *words, "./prog", env=here).end()
            self.assertEqual((status, error), (0, ""))
            words = output.splitlines()
            self.assertEqual(words[words.index("--host") + 1], hosts)
        for number in ("0", "x"):
            self.assertEqual(self.refused("-ppn", number, "./prog"),
                             f"mpiexec: -ppn needs a number of ranks from 1 on, not '{number}'")

    def test_a_file_of_programs(self):
        self.built(WHO)
        file = self.folder / "programs"
        file.write_text("# two programs\n\n-n 1 -wdir '" + str(self.folder) + "' ./program \"a  b\" \\'\n"
                        f"  -n 2 -env GIVEN 1 {self.folder}/program -n")
        self.assertEqual(self.mpiexec("-genv", "GIVEN", "all", "-configfile", file),
                         (0, ["0 of 3 program 0 <a  b> <'> GIVEN=all", "1 of 3 program 1 <-n> GIVEN=1",
                              "2 of 3 program 1 <-n> GIVEN=1"], ""))
        file.write_text(f"-n 1 {self.built(WHO)} 'b c' \\\n  d\n")
        self.assertEqual(self.mpiexec("-configfile", file), (0, ["0 of 1 program 0 <b c> <d>"], ""))
        self.assertEqual(self.refused("-configfile", file, "x"),
                         f"mpiexec: -configfile {file} must be the end of the command line")
        self.assertEqual(self.refused("-configfile", "none"), "mpiexec: cannot read the file none of -configfile")
        file.write_text("# nothing\n")
        self.assertEqual(self.refused("-configfile", file), "mpiexec: no program was given")
        file.write_text("./a 'b\n")
        self.assertEqual(self.refused("-configfile", file), f"mpiexec: -configfile {file}: a quote is not closed: ./a 'b")

    def test_options_that_cannot_matter_are_ignored(self):
        program = self.built(WHO)
        self.assertEqual(self.mpiexec("-n", 1, "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self", "-mca",
                                      "pml", "ob1", "-genvall", "-q", "--map-by", "slot", "-map-by", "core", "-bind-to",
                                      "none", "--bind-to=hwthread", "--map-by", ":OVERSUBSCRIBE", "--prefix", "/none",
                                      "--nooversubscribe", program), (0, ["0 of 1 program 0"], ""))
        self.assertEqual(self.refused("--mca", "btl"), "mpiexec: --mca needs a name and a value")

    def test_options_that_place_ranks_otherwise_are_named_in_one_line(self):
        program = self.built(WHO)
        got = self.mpiexec("-n", 1, "--map-by", "numa", "-bind-to", "socket", "--rank-by", "core", "-v", "-iface", "eth0",
                           "--cpus-per-proc", 2, "--report-bindings", program)
        self.assertEqual(got, (0, ["0 of 1 program 0"],
                               "mpiexec: warning: tonari ignores --map-by numa, -bind-to socket, --rank-by core, -v, "
                               "-iface eth0, --cpus-per-proc 2, --report-bindings; it places ranks in order, and binds "
                               "each to a core or none\n"))
        self.assertEqual(self.refused("--map-by", "x", program), "mpiexec: --map-by takes slot, core, node, socket, numa "
                                                                 "or ppr:N:node, not 'x'")

    def test_a_rank_that_needs_several_cores_is_not_bound(self):
        allowed = lambda *words: self.mpiexec("-n", 1, *words, "grep", "Cpus_allowed_list", "/proc/self/status")[1]
        every = subprocess.run(["grep", "Cpus_allowed_list", "/proc/self/status"], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        for words in (["--map-by", "slot:PE=2", "--bind-to", "core"], ["-map-by", "ppr:1:node:pe=2", "-bind-to", "core"],
                      ["--cpus-per-rank", 2], ["--bind-to", "numa"]):
            self.assertEqual(allowed(*words), every)
        if os.cpu_count() > 1:
            self.assertNotEqual(allowed("--bind-to", "core"), every)

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
        self.assertIn("takes core or none", self.refused("-bind-to", "moon", "./prog"))
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
        self.assertEqual(error.count("rank 1"), 1)
        self.assertRegex(error, r"tonari: rank 1 \(pid \d+, host \S+\) exited with status 0 without leaving the job: .*"
                                r"call MPI_Finalize")


if __name__ == "__main__":
    unittest.main()
