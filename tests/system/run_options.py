"""Options of `tonari run`, and programs that cannot be started."""

import os
import resource
import stat
import subprocess
import tempfile
import unittest

from harness.jobs import ACTOR, TONARI, JobTest


class Arguments(JobTest):
    def echoed(self, *arguments):
        status, output, _ = self.run_job("run", "-n", "1", *arguments)
        self.assertEqual(status, 0)
        return output.splitlines()

    def test_arguments_of_the_program_are_never_taken_for_options_of_run(self):
        theirs = ["-n", "5", "--help", "--", "--bind", "x", "-h", "[a,b]", "run", "", "--env", "A B", "%%"]
        self.assertEqual(self.echoed("printf", "%s\n", *theirs), theirs)
        self.assertEqual(self.echoed("--", "printf", "%s\n", *theirs), theirs)
        self.assertEqual(self.echoed("--tag-output", "printf", "%s\n", "-n")[0], "[0] -n")
        self.assertEqual(self.echoed("printf", "%s\n", "-np"), ["-np"])

    def test_a_program_may_have_the_name_of_a_tonari_command(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "info")
            with open(path, "w") as file:
                file.write("#!/bin/sh\necho theirs\n")
            os.chmod(path, 0o755)
            env = self.environment(PATH=folder + ":" + os.environ["PATH"])
            self.assertEqual(self.run_job("run", "-n", "1", "info", env=env)[1], "theirs\n")

    def test_every_spelling_of_the_number_of_ranks_is_accepted(self):
        for words in (["-n", "3"], ["-n3"], ["--ranks", "3"], ["--ranks=3"], ["-np", "3"], ["--np", "3"]):
            with self.subTest(words=words):
                self.assertEqual(self.run_job("run", *words, "echo", "x")[1], 3 * "x\n")

    def test_the_default_number_of_ranks_is_one_per_core(self):
        with_one = subprocess.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), TONARI, "run", "echo", "x"],
                                  capture_output=True, text=True, env=self.environment())
        self.assertEqual(with_one.stdout, "x\n")

    def test_a_wrong_number_of_ranks_is_refused(self):
        for number in ("0", "-1", "many", "1.5", "", "00"):
            with self.subTest(number=number):
                status, output, error = self.run_job("run", "-n", number, "true")
                self.assertEqual((status, output), (2, ""))
                self.assertRegex(error, r"^tonari run: --ranks.*(number of ranks|needs a value).*\n$")

    def refused(self, *words):
        status, output, error = self.run_job("run", *words)
        self.assertEqual((status, output, len(error.splitlines())), (2, "", 1), error)
        self.assertTrue(error.startswith("tonari run: ") and len(error) < 200, error)
        return error

    def test_a_number_of_ranks_with_a_leading_zero_is_decimal(self):
        self.assertEqual(self.run_job("run", "-n", "010", "printenv", "TONARI_SIZE")[1], 10 * "10\n")

    def test_a_wrong_time_limit_is_refused(self):
        for text in ("x", "-1", "0", "1e400", "inf", "nan", "5s", "1e10"):
            with self.subTest(text=text):
                self.assertRegex(self.refused("--timeout", text, "true"),
                                 rf"--timeout: must be a number of seconds above 0, .*, not '{text}';")

    def test_wrong_values_of_bind_and_apart_are_refused_with_the_choices(self):
        self.assertIn("--bind: must be core or none, not 'x';", self.refused("--bind", "x", "true"))
        self.assertIn("--apart: must be memory or network, not 'x';", self.refused("--apart=x", "true"))

    def test_the_option_network_is_refused_where_ranks_would_not_use_it(self):
        for apart in ([], ["--apart", "memory"]):
            self.assertIn("--network tcp: ranks of one machine use its memory, not the network; add --apart network",
                          self.refused(*apart, "--network", "tcp", "true"))
        env = self.environment(TONARI_NETWORK="tcp")
        self.assertEqual(self.run_job("run", "-n", "1", "true", env=env)[0], 0)

    def test_missing_needless_and_repeated_values_of_options_are_refused(self):
        self.assertIn("--timeout needs a value: SECONDS;", self.refused("--timeout"))
        self.assertIn("--tag-output takes no value;", self.refused("--tag-output=7", "true"))
        self.assertIn("--bind is given more than once;", self.refused("--bind", "core", "--bind", "none", "true"))
        self.assertIn("no option is called --tag-ouput; did you mean --tag-output?",
                      self.refused("--tag-ouput=7", "true"))
        self.assertIn("the program is missing;", self.refused("-n", "2"))

    def test_unknown_options_and_commands_are_refused_in_one_line(self):
        for words in (["run", "--tag-ouput", "true"], ["run"], ["run", "-n", "2"], ["walk"], []):
            with self.subTest(words=words):
                status, _, error = self.run_job(*words)
                self.assertEqual(status, 2)
                self.assertEqual(len(error.splitlines()), 1, error)

    def test_the_help_of_run_names_every_option(self):
        status, output, _ = self.run_job("run", "--help")
        self.assertEqual(status, 0)
        for option in ("-n", "--bind", "--tag-output", "--timeout", "--env", "--apart", "--network", "--stats",
                       "--hosts", "Examples:"):
            self.assertIn(option, output)


class TooMuch(JobTest):
    def test_more_ranks_than_a_host_supports_are_refused(self):
        status, _, error = self.run_job("run", "-n", "99999", "true")
        self.assertEqual(status, 2)
        self.assertRegex(error, r"^tonari run: --ranks: must be a number of ranks from 1 to 16384, not '99999'; ")

    def test_ranks_whose_rings_exceed_the_memory_are_refused(self):
        env = self.environment(TONARI_RING_SLOTS="65536")
        with open("/proc/meminfo") as file:
            available = int(file.read().split("MemAvailable:")[1].split()[0]) * 1024
        ranks = available // (65536 * 64) + 1000
        if ranks > 16384:
            self.skipTest("this machine has memory for every rank that a host takes")
        status, _, error = self.run_job("run", "-n", ranks, "true", env=env)
        self.assertEqual(status, 2)
        self.assertRegex(error, rf"^tonari run: {ranks} ranks need at least .* for their rings, but this host has "
                                r"only .* available: use fewer ranks or a smaller TONARI_RING_SLOTS\n$")

    def test_more_ranks_than_the_limit_of_descriptors_allows_are_refused(self):
        status, _, error = self.run_job(
            "run", "-n", "100", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
        self.assertEqual(status, 2)
        self.assertRegex(error, r"100 ranks need \d+ descriptors, and this process may have 256")

    def test_the_soft_limit_of_descriptors_is_raised_for_tonari_run_alone(self):
        status, output, error = self.run_job(
            "run", "-n", "40", "sh", "-c", "ulimit -n",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 4096)))
        self.assertEqual((status, error, output), (0, "", 40 * "128\n"))

    def test_more_ranks_than_the_limit_of_processes_allows_are_refused(self):
        if os.geteuid() == 0:
            self.skipTest("root has no limit of processes")
        status, _, error = self.run_job(
            "run", "-n", "20", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
        self.assertEqual(status, 2)
        self.assertRegex(error, r"starting rank \d+: .*ulimit -u")


class Environment(JobTest):
    def test_the_option_env_sets_and_overrides_variables_of_ranks(self):
        status, output, _ = self.run_job("run", "-n", "1", "--env", "A=1", "--env", "B=two words", "--env", "TERM=new",
                                         "sh", "-c", 'echo "$A/$B/$TERM"', env=self.environment(TERM="old"))
        self.assertEqual((status, output), (0, "1/two words/new\n"))

    def test_the_option_env_without_a_value_passes_on_a_variable_that_must_be_set(self):
        self.assertEqual(self.run_job("run", "-n", "1", "--env", "GIVEN", "printenv", "GIVEN",
                                      env=self.environment(GIVEN="yes"))[1], "yes\n")
        status, _, error = self.run_job("run", "-n", "1", "--env", "NOT_GIVEN", "true")
        self.assertEqual(status, 2)
        self.assertRegex(error, r"--env NOT_GIVEN: NOT_GIVEN is not set here")

    def test_the_option_env_refuses_empty_names_and_variables_that_run_sets(self):
        for text, why in (("=x", "'=x' has no name"), ("=", "'=' has no name"),
                          ("TONARI_RANK=1", "TONARI_RANK is set by `tonari run` for each rank")):
            with self.subTest(text=text):
                status, _, error = self.run_job("run", "-n", "1", "--env", text, "true")
                self.assertEqual(status, 2)
                self.assertRegex(error, rf"^tonari run: --env: .*{why}")

    def test_an_empty_setting_counts_as_unset(self):
        env = self.environment(TONARI_RING_SLOTS="64", TONARI_SPLIT="")
        self.assertEqual(self.actors(2, "join", "leave", options=["--env", "TONARI_RING_SLOTS="], env=env)[0], 0)

    def test_ranks_find_their_rank_and_the_number_of_ranks_in_the_environment(self):
        _, output, _ = self.run_job("run", "-n", "2", "sh", "-c", "echo $TONARI_RANK/$TONARI_SIZE")
        self.assertEqual(sorted(output.splitlines()), ["0/2", "1/2"])

    def test_a_setting_given_by_the_option_env_is_checked_before_ranks_start(self):
        status, _, error = self.run_job("run", "-n", "1", "--env", "TONARI_RING_SLOTS=3", "true")
        self.assertEqual(status, 2)
        self.assertIn("TONARI_RING_SLOTS=3", error)

    def test_the_option_apart_sets_the_variable_for_ranks(self):
        self.assertEqual(self.run_job("run", "-n", "1", "--apart", "memory", "printenv", "TONARI_APART")[1], "memory\n")
        self.assertEqual(self.run_job("run", "-n", "1", "--apart", "network", "printenv", "TONARI_APART")[1],
                         "network\n")

    def test_the_option_network_chooses_the_network_of_ranks_and_refuses_unknown_ones(self):
        words = ["-n", "1", "--network", "tcp", "printenv", "TONARI_NETWORK"]
        self.assertEqual(self.run_job("run", "--apart", "network", *words)[1], "tcp\n")
        self.assertEqual(self.run_job("run", *words, env=self.environment(TONARI_APART="network"))[1], "tcp\n")
        self.assertIn("--network: must be any or tcp or rc or ud, not 'x';",
                      self.run_job("run", "-n", "1", "--network", "x", "true")[2])
        self.assertEqual(self.actors(2, "join", "leave", options=["--apart", "network", "--network", "tcp"])[0], 0)

    def test_unknown_settings_of_ucx_are_refused_and_known_ones_accepted(self):
        def play(**variables):
            return self.actors(2, "join", "leave", options=["--apart", "network"], env=self.environment(**variables))
        for name in ("BOGUS", "TCP_PORT_RANGE"):
            status, _, error = play(**{f"TONARI_UCX_{name}": "1"})
            self.assertNotEqual(status, 0)
            self.assertIn(f"TONARI_UCX_{name} would have no effect: UCX has no setting {name} ", error)
            self.assertIn(f"use UCX_{name}\n", error)
        self.assertEqual(play(TONARI_UCX_TLS="tcp", TONARI_UCX_TCP_KEEPIDLE="3s", TONARI_UCX_RNDV_THRESH="64K")[0], 0)


class Binding(JobTest):
    def places(self, ranks, *options):
        _, output, _ = self.run_job("run", "-n", ranks, "--tag-output", *options, "sh", "-c",
                                    "grep Cpus_allowed_list /proc/self/status")
        return dict(line.split(" Cpus_allowed_list:\t") for line in output.splitlines())

    def here(self):
        with open("/proc/self/status") as file:
            return file.read().split("Cpus_allowed_list:\t")[1].split("\n")[0]

    def test_binding_to_cores_gives_each_rank_another_core(self):
        places = self.places(2, "--bind", "core")
        self.assertEqual(len(set(places.values())), min(2, len(os.sched_getaffinity(0))), places)

    def test_the_option_bind_none_leaves_ranks_unbound(self):
        self.assertEqual(set(self.places(2, "--bind", "none").values()), {self.here()})

    def test_more_ranks_than_cores_are_not_bound_by_default(self):
        self.assertEqual(set(self.places(len(os.sched_getaffinity(0)) + 1).values()), {self.here()})


class Programs(JobTest):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text, mode):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def check(self, program, status, text):
        answer, output, error = self.run_job("run", "-n", "3", program, cwd=self.folder.name)
        self.assertEqual((answer, output), (status, ""), error)
        self.assertRegex(error, text)
        self.assertEqual(len(error.splitlines()), 1, error)

    def test_a_program_that_does_not_exist_is_reported_with_status_127(self):
        self.check("no-such-program", 127, "no-such-program is not in PATH")
        self.check("./no-such-program", 127, "there is no file ./no-such-program")

    def test_an_empty_program_name_is_refused(self):
        self.check("", 127, "the program's name is empty")

    def test_a_program_behind_a_circle_of_symbolic_links_is_reported_with_the_cause(self):
        path = os.path.join(self.folder.name, "circle")
        os.symlink("circle", path)
        self.check(path, 127, "circle cannot be reached: Too many levels of symbolic links")

    def test_a_program_in_this_folder_but_not_in_the_path_is_suggested(self):
        self.write("program", "#!/bin/sh\n", stat.S_IRWXU)
        self.check("program", 127, r"write \./program")

    def test_files_that_are_not_executable_and_folders_are_refused_with_status_126(self):
        self.check(self.write("data", "x", 0o644), 126, "is not executable; if it is a program: chmod")
        self.check(self.folder.name, 126, "is a folder")

    def test_a_script_whose_interpreter_is_missing_is_reported_with_the_cause(self):
        self.check(self.write("script", "#!/no/such/interpreter\n", 0o755), 127,
                   "interpreter that its first line names")

    def test_a_script_without_an_interpreter_line_runs_in_a_shell(self):
        script = self.write("script", "echo shell\n", 0o755)
        self.assertEqual(self.run_job("run", "-n", "1", script)[:2], (0, "shell\n"))


class Counters(JobTest):
    def test_the_option_stats_prints_a_row_of_counters_per_rank(self):
        status, _, error = self.actors(2, "join", "leave", options=["--stats"])
        self.assertEqual(status, 0)
        self.assertRegex(error, r"^rank +sent +received .*\n +0 +\d+ .*\n +1 +\d+ .*\n$")

    def test_the_option_stats_says_when_no_rank_has_joined(self):
        self.assertEqual(self.run_job("run", "-n", "1", "--stats", "true"),
                         (0, "", "tonari: --stats: no rank has joined the job, so there are no counters to print\n"))


if __name__ == "__main__":
    unittest.main()
