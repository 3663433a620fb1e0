"""`tonari bench` itself: its list, its refusals, and how it stops."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness.bench import BenchTest, TONARI, has_rival
from harness.jobs import PATIENCE, processes_marked, eventually

SUITES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "suites")
NAMES = sorted(os.listdir(SUITES))


class Listing(BenchTest):
    def test_bench_lists_each_benchmark_with_its_question(self):
        status, output, _ = self.run_job("bench")
        self.assertEqual(status, 0)
        for name in NAMES:
            self.assertRegex(output, rf"(?m)^ *{name} +\S.*\?$")


class Refusal(BenchTest):
    def test_an_unknown_benchmark_is_refused_with_the_nearest_name_or_all(self):
        self.assertIn("did you mean pingpong?", self.refused("pingpng"))
        for name in ("nothing-like-it", "foo", "l"):
            error = self.refused(name)
            self.assertNotIn("did you mean", error)
            listed = re.search(r"there are (.*); `tonari bench` says", error).group(1)
            self.assertEqual(sorted(re.split(", | and ", listed)), NAMES)

    def test_wrong_sizes_are_refused_with_an_explanation(self):
        for sizes in ("8x", "0", "-8", "64-8", "", ",", "8,,16", "99999999999999999999", "17179869184G", "1T"):
            with self.subTest(sizes=sizes):
                self.assertRegex(self.refused("pingpong", "--sizes", sizes), "--sizes.* (size|needs a value)")

    def test_a_network_that_no_rank_would_use_is_refused(self):
        for name in ("pingpong", "lock"):
            self.assertIn("--network tcp: ranks of one machine use its memory, not the network; add --apart network",
                          self.refused(name, "--network", "tcp"))

    def test_a_wrong_choice_is_refused_with_a_list_of_choices(self):
        self.assertIn("choose among warm,cold", self.refused("pingpong", "--buffers", "tepid"))
        self.assertIn("blocking,posted,unexpected", self.refused("pingpong", "--receivers", "blocking,lost"))
        for split in ("49", "-1", "x", "0,,8"):
            self.assertIn("--split: it takes numbers from 0 to 48", self.refused("pingpong", "--split", split))
        self.assertIn("drain-reverse", self.refused("match", "--cases", "unexpected,lost"))
        for option, most in (("--depths", 1000000), ("--payloads", 8192)):
            for number in (str(most + 1), "-1", "x", "0,,8"):
                self.assertIn(f"{option}: it takes numbers from 0 to {most}", self.refused("match", option, number))
        self.assertIn("started-receive", self.refused("lu", "--modes", "sending"))
        self.assertIn("--sweep: must be n or ranks", self.refused("lu", "--sweep", "columns"))

    def test_wrong_numbers_are_refused_with_their_range(self):
        for option, what in (("--block", "columns"), ("--rounds", "rounds"), ("--ranks", "ranks")):
            for number in ("0", "-1", "x", "1.5", "99999999999999999999"):
                with self.subTest(option=option, number=number):
                    self.assertRegex(self.refused("lu", option, number),
                                     rf"^tonari bench lu: {option}: must be a number of {what} from 1 to \d+, "
                                     rf"not '{number}'; see tonari bench lu --help$")

    def test_a_wrong_condition_is_refused_before_measuring(self):
        self.assertRegex(self.refused("lu", "--fail-if", "ratio"),
                         "^tonari bench lu: --fail-if 'ratio': must be QUANTITY OPERATOR NUMBER, such as ")

    def test_wrong_settings_are_refused_before_measuring(self):
        status, output, error = self.run_job("bench", "lu", env=self.environment(TONARI_SPLIT="49"))
        self.assertEqual((status, output), (2, ""))
        self.assertRegex(error, "^tonari bench lu: TONARI_SPLIT=49: must be a number from 0 to 48; .*\n$")

    def test_a_second_name_after_a_rival_is_refused(self):
        self.assertIn("'mpich' is one argument too many", self.refused("lu", "--rival", "openmpi", "mpich"))

    def test_an_unknown_rival_is_refused_with_a_list_of_rivals(self):
        self.assertRegex(self.refused("pingpong", "--rival", "lam"), "there are openmpi, mpich, .*openmpi-mt.*swap-zram")

    def test_a_benchmark_that_a_rival_does_not_support_is_refused_with_a_list(self):
        self.assertIn("it knows pingpong, rate, window, atomics", self.refused("lock", "--rival", "ucx"))
        self.assertIn("can be rivals of stream, matmul", self.refused("pingpong", "--rival", "swap-zram"))

    def test_benchmarks_whose_mpi_program_needs_windows_are_refused_for_tonari_s_mpi(self):
        for name in ("window", "atomics", "lock", "register", "multicast", "splash_fft"):
            self.assertIn(f"--rival tonari-mpi: {name} calls one-sided functions of MPI",
                          self.refused(name, "--rival", "tonari-mpi"))

    def test_a_missing_program_of_tonari_s_mpi_is_reported(self):
        self.assertRegex(self.refused("coherence", "--rival", "tonari-mpi"),
                         "--rival tonari-mpi: .*rivals/tonari-mpi/coherence is missing; build it with .*TONARI_FRONTS")

    def test_one_rank_is_refused_where_two_are_needed(self):
        self.assertIn("-n 2", self.refused("pingpong", "-n", "1"))

    def test_a_missing_rival_is_reported_with_its_packages(self):
        folder = os.path.join(self.folder, "bin")
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        result = subprocess.run([TONARI, "bench", "pingpong", "--quick", "--rival", "mpich"], text=True,
                                capture_output=True, env=self.environment(PATH=folder))
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, "mpiexec.mpich is not installed.*libmpich-dev.*make bench")


class Comparing(BenchTest):
    def test_each_round_measures_one_system_twice_so_that_noise_is_seen(self):
        report, output, _ = self.bench("pingpong", "--sizes", "8", "--buffers", "warm", "--receivers", "blocking",
                                  "--rounds", "3")
        twice = {series["case"]: series for series in report["again"] if series["metric"] == "latency"}
        first = {series["case"]: series for series in report["series"]
                 if (series["system"], series["metric"]) == ("tonari", "latency")}
        self.assertEqual(sorted(twice), sorted(first))
        for case, series in first.items():
            self.assertEqual(len(series["points"][0]["rounds"]), 3)
            self.assertNotEqual(series["points"][0]["samples"], twice[case]["points"][0]["samples"])
            self.assertIn("interval", series["points"][0])
        self.assertRegex(output, r"\nnoise: tonari differs from itself by \d+\.\d % in the median of 1 quantities")

    def test_a_true_condition_is_status_3_and_an_unmeasured_quantity_is_refused_after_the_results(self):
        run = ("pingpong", "--sizes", "8", "--buffers", "warm", "--fail-if")
        report, output, _ = self.bench(*run, "warm.8.latency > 0", "--fail-if", "8.ratio to ring > 0", status=3)
        self.assertRegex(output, r"\nfail-if warm\.8\.latency > 0: TRUE \(1 quantity\)\n  true: pingpong, warm, 8: latency ")
        self.assertRegex(output, r"\nfail-if 8\.ratio to ring > 0: TRUE ")
        self.assertEqual(report["command"][:3], ["bench", "pingpong", "--sizes"])
        self.assertRegex(self.bench(*run, "latency < 0")[1], r"\nfail-if latency < 0: false \(3 quantities\)\n$")
        self.assertIn("nothing that was measured is called 9.latency", self.bench(*run, "9.latency > 0", status=2)[2])

    def test_a_busy_machine_is_reported(self):
        with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
            self.addCleanup(busy.kill)
            report, _, error = self.bench("pingpong", "--sizes", "8")
            busy.kill()
        self.assertRegex(error, r"warning: other programs use \d+ % of the processors")
        self.assertRegex(report["unfit"][0], "^other programs use")

    def test_one_round_or_a_flag_measures_every_system_once(self):
        for arguments in ((), ("--rounds", "2", "--no-noise-floor")):
            self.assertEqual(self.bench("pingpong", "--sizes", "8", *arguments)[0]["again"], [])

    def test_comparisons_with_a_lower_bound_state_what_they_could_show(self):
        report, _, _ = self.bench("pingpong", "--sizes", "8", "--rounds", "3")
        found = [one for one in report["comparisons"] if (one["with"], one["case"], one["metric"]) == ("ring", "warm", "latency")]
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0]["pairs"], 3)
        self.assertTrue(found[0]["low"] < found[0]["ratio"] < found[0]["high"])
        self.assertGreater(found[0]["smallest_difference"], 0)

    @unittest.skipUnless(has_rival("openmpi", "pingpong"), "Open MPI's program is not built")
    def test_a_rival_that_aborts_is_reported_and_does_not_end_the_run(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        launcher = os.path.join(folder.name, "mpirun.openmpi")
        with open(launcher, "w") as file:
            file.write("#!/bin/sh\nkill -KILL $$\n")
        os.chmod(launcher, 0o755)
        environment = self.environment(PATH=folder.name + os.pathsep + os.environ["PATH"])
        path = os.path.join(self.folder, "report.json")
        status, output, error = self.run_job("bench", "pingpong", "--sizes", "8", "--quick", "--rounds", "2",
                                             "--rival", "openmpi-default", "--json", path, env=environment)
        self.assertEqual(status, 0, error)
        self.assertRegex(output, "not measured: openmpi.*ended with status 137")
        with open(path) as file:
            report = json.load(file)
        self.check_shape(report)
        self.assertEqual([failed["system"] for failed in report["failed"]], ["openmpi"])
        self.assertEqual(error.count("round 1 of 2: openmpi"), 1)
        self.assertNotIn("round 2 of 2: openmpi", error)
        self.assertIn("round 2 of 2: tonari", error)


class All(BenchTest):
    """`tonari bench all`."""

    def all(self, *arguments, status=0, env=None):
        answer, output, error = self.run_job("bench", "all", "--quick", "-o", self.folder, *arguments,
                                             env=env or self.environment())
        self.assertEqual(answer, status, error)
        return output, error

    def test_results_and_outputs_are_in_the_folder(self):
        output, error = self.all("queue-depth", "diff")
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["diff.json", "diff.txt", "papers.md", "queue-depth.json", "queue-depth.txt"])
        self.assertRegex(output, r"diff +done in")
        self.assertRegex(error, r"\[2 of 2\] diff \(.* so far, about .* left\)")
        with open(os.path.join(self.folder, "queue-depth.json")) as file:
            self.check_shape(json.load(file))
        with open(os.path.join(self.folder, "queue-depth.txt")) as file:
            self.assertIn("queue-depth: how deep", file.read())

    def test_a_run_continues_after_it_was_killed(self):
        job = self.start("bench", "all", "--quick", "-o", self.folder, "queue-depth", "diff")
        job.error.wait_for("] diff")
        job.signal(signal.SIGKILL)
        job.end()
        eventually(lambda: not processes_marked(self._mark), "the processes of the killed run end")
        output, error = self.all("queue-depth", "diff")
        self.assertRegex(output, "queue-depth +was there")
        self.assertRegex(output, "diff +done in")
        self.assertNotIn("queue-depth", error)
        self.assertEqual(len([name for name in os.listdir(self.folder) if name.endswith(".tmp")]), 0)

    def test_a_benchmark_that_fails_does_not_end_the_run(self):
        os.mkdir(os.path.join(self.folder, "queue-depth.json"))  # its results cannot be written
        output, _ = self.all("queue-depth", "diff", status=1)
        self.assertRegex(output, "queue-depth +FAILED with status 2")
        self.assertRegex(output, "diff +done in")

    def test_a_signal_ends_the_run_and_says_how_to_continue(self):
        job = self.start("bench", "all", "--quick", "-o", self.folder, "diff")
        job.error.wait_for("round 1")
        job.signal(signal.SIGINT)
        status, _, error = job.end()
        self.assertEqual(status, 128 + signal.SIGINT)
        self.assertIn("the same command continues with diff", error)

    def test_wrong_names_and_folders_are_refused(self):
        self.assertIn("no benchmark is called 'nosuch'", self.refused("all", "nosuch", "-o", self.folder))
        self.assertIn("cannot make /proc/none", self.refused("all", "-o", "/proc/none"))
        self.assertIn("--quick excludes --full", self.refused("all", "--quick", "--full", "-o", self.folder))
        self.assertIn("--output is required", self.refused("all"))


class Output(BenchTest):
    def test_results_that_cannot_be_printed_are_an_error(self):
        words = [TONARI, "bench", "pingpong", "--quick", "--sizes", "8"]
        with open("/dev/full", "w") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, env=self.environment(),
                                  timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write standard output: No space left on device", done.stderr)


class Json(BenchTest):
    def test_a_report_in_a_missing_folder_is_refused_before_measuring(self):
        error = self.refused("pingpong", "--json", os.path.join(self.folder, "none", "report.json"))
        self.assertIn(f"there is no folder {self.folder}/none; make it, or give --json a path", error)

    def test_a_report_that_cannot_be_created_is_refused_before_measuring(self):
        self.assertIn("cannot write /proc/report.json: no file can be made in /proc; give --json a path",
                      self.refused("pingpong", "--json", "/proc/report.json"))
        self.assertIn(f"cannot write {self.folder}: Is a directory", self.refused("lu", "--json", self.folder))

    def test_a_report_on_a_full_disk_is_an_error_but_the_table_is_printed(self):
        status, output, error = self.run_job("bench", "pingpong", "--quick", "--sizes", "8", "--json", "/dev/full")
        self.assertEqual(status, 2)
        self.assertIn("latency", output)
        self.assertRegex(error, "cannot write /dev/full: No space left on device; .")

    def test_an_old_report_is_replaced_only_by_a_complete_one(self):
        path = os.path.join(self.folder, "report.json")
        with open(path, "w") as file:
            file.write("old")
        job = self.start("bench", "pingpong", "--json", path)
        job.error.wait_for("round 1")
        job.signal(signal.SIGTERM)
        job.end()
        with open(path) as file:
            self.assertEqual(file.read(), "old")


class Stopping(BenchTest):
    def check_stops(self, number):
        job = self.start("bench", "pingpong")
        job.error.wait_for("round 1 of 5: tonari")
        eventually(lambda: len(processes_marked(self._mark)) >= 4, "the ranks run")
        job.signal(number)
        status, output, error = job.end()
        self.assertEqual((status, output), (128 + number, ""))
        self.assertIn(f"stopped by signal {number}", error)

    def test_control_c_ends_a_benchmark_and_all_its_processes(self):
        self.check_stops(signal.SIGINT)

    def test_sigterm_ends_a_benchmark_and_all_its_processes(self):
        self.check_stops(signal.SIGTERM)

    def test_sigkill_ends_a_benchmark_and_all_its_processes(self):
        job = self.start("bench", "pingpong")
        job.error.wait_for("round 1 of 5: tonari")
        eventually(lambda: len(processes_marked(self._mark)) >= 4, "the ranks run")
        job.signal(signal.SIGKILL)
        self.assertEqual(job.end()[0], -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
