"""`tonari bench programs`: with some real programs, and with a stand-in for R that behaves as each test needs."""

import glob
import json
import os
import shutil
import signal
import unittest

from catalog import CATALOG
from harness.far_bench import FarBenchTest, has_rivals, made_for_rivals
from harness.jobs import eventually

UNDER_TONARI = 'echo 1; case "$LD_PRELOAD" in *tonari*)'
IN_A_CGROUP = "echo 1; if grep -q tonari-bench /proc/self/cgroup; then"

LARGE = 'exec python3 -c "print(sum(bytearray(64 << 20)))"'


def processes_with(word):
    """Returns the command lines that contain a word."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path) as file:
                line = file.read().split("\0")
        except OSError:
            continue  # it has ended
        found += [line] * (word in line)
    return found


class ProgramsTest(FarBenchTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.check_no_files)

    def check_no_files(self):
        for job in self._jobs:
            self.assertEqual(glob.glob(f"/var/tmp/tonari-bench-{job.pid}*"), [])

    def use_for_r(self, script, *tools):
        """Puts a script in the place of Rscript. With `tools`, only these and the script are in PATH."""
        folder = os.path.join("/tmp", f"stand-in-{self._mark}")
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        if script:
            with open(os.path.join(folder, "Rscript"), "w") as file:
                file.write(f"#!/bin/sh\n{script}\n")
            os.chmod(file.name, 0o755)
        for tool in tools:
            os.symlink(shutil.which(tool), os.path.join(folder, tool))
        return folder if tools else f"{folder}:{os.environ['PATH']}"

    def ask_r(self, script, *options, programs="R", status=0, tools=()):
        """Runs the benchmark with a script in the place of R; returns its output and error output."""
        env = self.environment(PATH=self.use_for_r(script, *tools))
        options = ("--programs", programs, *options)
        found, output, error = self.run_job("bench", "programs", "--quick", *options, env=env)
        self.assertEqual(found, status, error)
        return output, error


class Programs(ProgramsTest):
    def check_real_program(self, program, command, *options):
        """Checks that a program has a time under tonari, and the same output as alone."""
        if shutil.which(command) is None:
            self.skipTest(f"{command} is not installed: scripts/setup far")
        report, output, _ = self.bench("programs", "--programs", program, "--local", "90", *options)
        for metric in ("time", "memory"):
            self.check_case(report, program, metric, percents=[90])
        self.assertEqual(list(self.points(report, "tonari", program, "differs")), [90])
        self.assertIn("all as they should be", output)

    def test_sort_is_timed_and_prints_the_same(self):
        self.check_real_program("sort", "sort")

    def test_sqlite_is_timed_and_prints_the_same(self):
        self.check_real_program("sqlite", "sqlite3")

    def test_redis_is_timed_and_replies_the_same_from_a_long_path(self):
        folder = os.path.join("/var/tmp", f"{self._mark}-{'x' * 100}")
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        self.check_real_program("redis", "redis-server", "--folder", folder)

    def test_the_driver_knows_the_programs_of_the_catalogue(self):
        self.assertIn("choose among " + ",".join(CATALOG), self.refused("programs", "--programs", "lisp"))

    def test_several_shares_get_a_table_of_slowdowns(self):
        output, _ = self.ask_r(LARGE, "--local", "20,100")
        self.assertRegex(output, r"(?m)^program +100 % +20 %\nR +\S+x +\S+x\ngeometric mean +\S+x +\S+x$")

    def test_wrong_options_are_refused(self):
        self.assertIn("--programs lisp: choose among R,pandas", self.refused("programs", "--programs", "sort,lisp"))
        self.assertIn("numbers from 1 to 100", self.refused("programs", "--local", "0"))
        self.assertIn("choose among", self.refused("programs", "--heap", "R,unknown"))
        self.assertIn("a number of seconds from 1", self.refused("programs", "--time-limit", "0"))
        self.assertIn("unchanged programs do not map their data", self.refused("programs", "--rival", "mmap"))
        self.assertIn("rivals get the memory that", self.refused("programs", "--rivals-only", "--rival", "swap-zram"))
        self.assertIn("--folder says where", self.refused("programs", "--folder", "/proc"))

    def test_a_program_that_is_not_installed_is_named_and_left_out(self):
        output, _ = self.ask_r("echo 1", programs="R,sqlite", tools=("python3", "sh"))
        self.assertIn("not installed: scripts/setup programs: sqlite\n", output)
        self.assertRegex(output, r"(?m)^R +\d")

    def test_no_program_at_all_is_an_error(self):
        _, error = self.ask_r("", tools=("python3",), status=2)
        self.assertIn("none of the programs is installed; run: scripts/setup programs", error)

    def test_an_output_that_differs_is_an_error_that_names_the_program(self):
        output, _ = self.ask_r("date +%N", status=1)
        self.assertIn("WRONG, the output differs from that of the local run: R (tonari at 20 %)\n", output)
        self.assertNotIn("all as they should be", output)

    def test_an_exit_status_other_than_0_is_an_error_with_the_programs_words(self):
        output, error = self.ask_r(f"{UNDER_TONARI} echo no luck >&2; exit 3;; esac", status=1)
        self.assertIn("WRONG, the exit status is not 0: R (tonari at 20 %)\n", output)
        self.assertIn("no luck", error)

    def test_an_empty_output_is_an_error(self):
        output, _ = self.ask_r("true", status=1)
        self.assertIn("WRONG, the output is too short: R (local at 100 %)\n", output)

    def test_a_program_that_keeps_all_its_memory_is_in_no_mean(self):
        output, _ = self.ask_r("echo 1", "--local", "20,50")
        self.assertIn("not limited (as much memory as alone), so in no mean: R\n", output)
        self.assertRegex(output, r"(?m)^geometric mean +- +-$")

    def test_a_process_that_a_program_leaves_behind_is_ended(self):
        output, _ = self.ask_r("sleep 61.5 & echo 1", "--time-limit", "2")
        self.assertIn("too slow, ended after the time limit: R (local at 100 %)", output)
        self.assertEqual(processes_with("61.5"), [])

    def test_a_program_that_is_too_slow_is_ended_and_reported(self):
        output, _ = self.ask_r(f"{UNDER_TONARI} sleep 60;; esac", "--time-limit", "1")
        self.assertRegex(output, r"(?m)^R +\S+ .* > 1.00 ")
        self.assertIn("too slow, ended after the time limit: R (tonari at 20 %)\n", output)

    def test_a_rival_that_cannot_be_set_up_is_left_out_with_the_reason(self):
        output, error = self.ask_r("echo 1", "--rival", "swap-file", "--folder", "/dev/shm")
        self.assertRegex(error, "without --rival swap-file: (cannot swap to .*--folder|it takes root|no cgroup)")
        tables, _, reasons = output.partition("not measured: swap-file: ")
        self.assertNotIn("swap-file", tables)
        self.assertIn("swap", reasons)

    def test_a_stopped_run_leaves_nothing_behind(self):
        env = self.environment(PATH=self.use_for_r(f"{UNDER_TONARI} exec sleep 60;; esac"))
        job = self.start("bench", "programs", "--programs", "R", env=env)
        job.error.wait_for("tonari R local")
        job.signal(signal.SIGINT)
        self.assertEqual(job.end()[0], 128 + signal.SIGINT)


class Rivals(ProgramsTest):
    def setUp(self):
        if not has_rivals():
            self.skipTest("no root, no zram, or no cgroups of memory here")
        super().setUp()
        before = made_for_rivals()
        self.addCleanup(lambda: self.assertEqual(made_for_rivals() - before, set()))

    def test_rivals_get_the_memory_of_tonari(self):
        path = os.path.join(self.folder, "report.json")
        options = ("--rival", "swap-zram,swap-file", "--json", path)
        output, _ = self.ask_r(LARGE, *options)
        with open(path) as file:
            report = json.load(file)
        self.assertRegex(output, r"(?m)^tonari / swap-file: median \S+x, geometric mean \S+x, of 1 program$")
        local, used = (self.points(report, system, "R", "memory") for system in ("local", "tonari"))
        self.assertLess(used[20]["median"], local[100]["median"] - 32)
        for rival in ("swap-zram", "swap-file"):
            self.assertLess(self.points(report, rival, "R", "memory")[20]["median"], used[20]["median"] + 8.1)

    def test_a_rival_without_memory_is_listed_and_left_out_of_the_mean(self):
        if any(name.startswith("/") for name in made_for_rivals() if "tonari" not in name):
            self.skipTest("this machine swaps, so that a rival gets more memory than its own swap area")
        script = f"""{IN_A_CGROUP} exec python3 -c 'print(len(b"1" * (1 << 30)))'; fi"""
        output, _ = self.ask_r(script, "--rival", "swap-zram")
        self.assertIn("tonari / swap-zram: no ratio; killed: R\n", output)
        self.assertIn("all as they should be", output)

    def test_a_rival_that_fails_with_memory_left_is_an_error(self):
        output, error = self.ask_r(f"{IN_A_CGROUP} echo no luck >&2; exit 3; fi", "--rival", "swap-zram", status=1)
        self.assertIn("WRONG, the exit status is not 0: R (swap-zram at 20 %)\n", output)
        self.assertIn("no luck", error)

    def test_a_stopped_rival_leaves_nothing_behind(self):
        env = self.environment(PATH=self.use_for_r(f"{IN_A_CGROUP} exec sleep 60; fi"))
        job = self.start("bench", "programs", "--programs", "R", "--rival", "swap-zram", env=env)
        job.error.wait_for("swap-zram R local")
        eventually(lambda: glob.glob("/sys/fs/cgroup/**/tonari-bench-*", recursive=True), "the rival has its memory")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.end()[0], 128 + signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
