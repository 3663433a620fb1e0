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

    def test_arguments_of_the_program_are_never_taken_for_ours(self):
        theirs = ["-n", "5", "--help", "--", "--bind", "x", "-h", "[a,b]", "run", "", "--env", "A B", "%%"]
        self.assertEqual(self.echoed("printf", "%s\n", *theirs), theirs)
        self.assertEqual(self.echoed("--", "printf", "%s\n", *theirs), theirs)
        self.assertEqual(self.echoed("--tag-output", "printf", "%s\n", "-n")[0], "[0] -n")
        self.assertEqual(self.echoed("printf", "%s\n", "-np"), ["-np"])

    def test_program_may_be_named_like_a_command(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "info")
            with open(path, "w") as file:
                file.write("#!/bin/sh\necho theirs\n")
            os.chmod(path, 0o755)
            env = self.environment(PATH=folder + ":" + os.environ["PATH"])
            self.assertEqual(self.run_job("run", "-n", "1", "info", env=env)[1], "theirs\n")

    def test_ranks_may_be_written_in_each_way(self):
        for words in (["-n", "3"], ["-n3"], ["--ranks", "3"], ["--ranks=3"], ["-np", "3"], ["--np", "3"]):
            with self.subTest(words=words):
                self.assertEqual(self.run_job("run", *words, "echo", "x")[1], 3 * "x\n")

    def test_default_is_one_rank_per_core(self):
        with_one = subprocess.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), TONARI, "run", "echo", "x"],
                                  capture_output=True, text=True, env=self.environment())
        self.assertEqual(with_one.stdout, "x\n")

    def test_wrong_numbers_of_ranks(self):
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

    def test_a_number_is_decimal(self):
        self.assertEqual(self.run_job("run", "-n", "010", "printenv", "TONARI_SIZE")[1], 10 * "10\n")

    def test_wrong_time_limits(self):
        for text in ("x", "-1", "0", "1e400", "inf", "nan", "5s", "1e10"):
            with self.subTest(text=text):
                self.assertRegex(self.refused("--timeout", text, "true"),
                                 rf"--timeout: must be a number of seconds above 0, .*, not '{text}';")

    def test_wrong_choices(self):
        self.assertIn("--bind: must be core or none, not 'x';", self.refused("--bind", "x", "true"))
        self.assertIn("--apart: must be memory or network, not 'x';", self.refused("--apart=x", "true"))

    def test_network_is_refused_where_ranks_would_not_use_it(self):
        for apart in ([], ["--apart", "memory"]):
            self.assertIn("--network tcp: ranks of one machine use its memory, not the network; add --apart network",
                          self.refused(*apart, "--network", "tcp", "true"))
        env = self.environment(TONARI_NETWORK="tcp")
        self.assertEqual(self.run_job("run", "-n", "1", "true", env=env)[0], 0)

    def test_missing_and_needless_values(self):
        self.assertIn("--timeout needs a value: SECONDS;", self.refused("--timeout"))
        self.assertIn("--tag-output takes no value;", self.refused("--tag-output=7", "true"))
        self.assertIn("--bind is given more than once;", self.refused("--bind", "core", "--bind", "none", "true"))
        self.assertIn("no option is called --tag-ouput; did you mean --tag-output?", self.refused("--tag-ouput=7", "true"))
        self.assertIn("the program is missing;", self.refused("-n", "2"))

    def test_unknown_options_and_commands(self):
        for words in (["run", "--tag-ouput", "true"], ["run"], ["run", "-n", "2"], ["walk"], []):
            with self.subTest(words=words):
                status, _, error = self.run_job(*words)
                self.assertEqual(status, 2)
                self.assertEqual(len(error.splitlines()), 1, error)

    def test_help_names_every_option(self):
        status, output, _ = self.run_job("run", "--help")
        self.assertEqual(status, 0)
        for option in ("-n", "--bind", "--tag-output", "--timeout", "--env", "--apart", "--network", "--stats", "--hosts",
                       "Examples:"):
            self.assertIn(option, output)


class TooMuch(JobTest):
    def test_more_ranks_than_a_host_takes(self):
        status, _, error = self.run_job("run", "-n", "99999", "true")
        self.assertEqual(status, 2)
        self.assertRegex(error, r"^tonari run: --ranks: must be a number of ranks from 1 to 16384, not '99999'; ")

    def test_more_ranks_than_memory(self):
        env = self.environment(TONARI_RING_SLOTS="65536")
        with open("/proc/meminfo") as file:
            available = int(file.read().split("MemAvailable:")[1].split()[0]) * 1024
        ranks = available // (65536 * 64) + 1000
        if ranks > 16384:
            self.skipTest("this machine has memory for every rank that a host takes")
        status, _, error = self.run_job("run", "-n", ranks, "true", env=env)
        self.assertEqual(status, 2)
        self.assertRegex(error, rf"^tonari run: {ranks} ranks need at least .* for their rings, but this machine has .* "
                                r"available: use fewer ranks or a smaller TONARI_RING_SLOTS\n$")

    def test_more_ranks_than_descriptors(self):
        status, _, error = self.run_job(
            "run", "-n", "100", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))
        self.assertEqual(status, 2)
        self.assertRegex(error, r"100 ranks need \d+ descriptors, and this process may have 256")

    def test_soft_limit_of_descriptors_is_raised_for_us_alone(self):
        status, output, error = self.run_job(
            "run", "-n", "40", "sh", "-c", "ulimit -n",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 4096)))
        self.assertEqual((status, error, output), (0, "", 40 * "128\n"))

    def test_more_ranks_than_processes(self):
        if os.geteuid() == 0:
            self.skipTest("root has no limit of processes")
        status, _, error = self.run_job(
            "run", "-n", "20", "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
        self.assertEqual(status, 2)
        self.assertRegex(error, r"starting rank \d+: .*ulimit -u")


class Environment(JobTest):
    def test_env_sets_and_overrides(self):
        status, output, _ = self.run_job("run", "-n", "1", "--env", "A=1", "--env", "B=two words", "--env", "TERM=new",
                                         "sh", "-c", 'echo "$A/$B/$TERM"', env=self.environment(TERM="old"))
        self.assertEqual((status, output), (0, "1/two words/new\n"))

    def test_env_without_value_must_be_set(self):
        self.assertEqual(self.run_job("run", "-n", "1", "--env", "GIVEN", "printenv", "GIVEN",
                                      env=self.environment(GIVEN="yes"))[1], "yes\n")
        status, _, error = self.run_job("run", "-n", "1", "--env", "NOT_GIVEN", "true")
        self.assertEqual(status, 2)
        self.assertRegex(error, r"--env NOT_GIVEN: NOT_GIVEN is not set here")

    def test_env_without_name_or_of_ours_is_refused(self):
        for text, why in (("=x", "'=x' has no name"), ("=", "'=' has no name"),
                          ("TONARI_RANK=1", "TONARI_RANK is set by `tonari run` for each rank")):
            with self.subTest(text=text):
                status, _, error = self.run_job("run", "-n", "1", "--env", text, "true")
                self.assertEqual(status, 2)
                self.assertRegex(error, rf"^tonari run: --env: .*{why}")

    def test_empty_setting_counts_as_none(self):
        env = self.environment(TONARI_RING_SLOTS="64", TONARI_SPLIT="")
        self.assertEqual(self.actors(2, "join", "leave", options=["--env", "TONARI_RING_SLOTS="], env=env)[0], 0)

    def test_ranks_know_their_place(self):
        _, output, _ = self.run_job("run", "-n", "2", "sh", "-c", "echo $TONARI_RANK/$TONARI_SIZE")
        self.assertEqual(sorted(output.splitlines()), ["0/2", "1/2"])

    def test_settings_given_by_env_reach_the_arena(self):
        status, _, error = self.run_job("run", "-n", "1", "--env", "TONARI_RING_SLOTS=3", "true")
        self.assertEqual(status, 2)
        self.assertIn("TONARI_RING_SLOTS=3", error)

    def test_apart(self):
        self.assertEqual(self.run_job("run", "-n", "1", "--apart", "memory", "printenv", "TONARI_APART")[1], "memory\n")
        self.assertEqual(self.run_job("run", "-n", "1", "--apart", "network", "printenv", "TONARI_APART")[1],
                         "network\n")

    def test_network(self):
        words = ["-n", "1", "--network", "tcp", "printenv", "TONARI_NETWORK"]
        self.assertEqual(self.run_job("run", "--apart", "network", *words)[1], "tcp\n")
        self.assertEqual(self.run_job("run", *words, env=self.environment(TONARI_APART="network"))[1], "tcp\n")
        self.assertIn("--network: must be any or tcp or rc or ud, not 'x';",
                      self.run_job("run", "-n", "1", "--network", "x", "true")[2])
        self.assertEqual(self.actors(2, "join", "leave", options=["--apart", "network", "--network", "tcp"])[0], 0)

    def test_settings_of_ucx(self):
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

    def test_core_gives_each_rank_another_core(self):
        places = self.places(2, "--bind", "core")
        self.assertEqual(len(set(places.values())), min(2, len(os.sched_getaffinity(0))), places)

    def test_none_leaves_ranks_where_they_are(self):
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

    def test_not_found(self):
        self.check("no-such-program", 127, "no-such-program is not in PATH")
        self.check("./no-such-program", 127, "there is no file ./no-such-program")

    def test_empty_name(self):
        self.check("", 127, "the program's name is empty")

    def test_not_to_be_reached(self):
        path = os.path.join(self.folder.name, "circle")
        os.symlink("circle", path)
        self.check(path, 127, "circle cannot be reached: Too many levels of symbolic links")

    def test_in_this_folder(self):
        self.write("program", "#!/bin/sh\n", stat.S_IRWXU)
        self.check("program", 127, r"write \./program")

    def test_not_executable(self):
        self.check(self.write("data", "x", 0o644), 126, "is not executable; if it is a program: chmod")
        self.check(self.folder.name, 126, "is a folder")

    def test_interpreter_missing(self):
        self.check(self.write("script", "#!/no/such/interpreter\n", 0o755), 127, "interpreter that its first line names")

    def test_script_without_first_line_runs_in_a_shell(self):
        script = self.write("script", "echo shell\n", 0o755)
        self.assertEqual(self.run_job("run", "-n", "1", script)[:2], (0, "shell\n"))


class Counters(JobTest):
    def test_table_for_ranks_that_joined(self):
        status, _, error = self.actors(2, "join", "leave", options=["--stats"])
        self.assertEqual(status, 0)
        self.assertRegex(error, r"^rank +sent +received .*\n +0 +\d+ .*\n +1 +\d+ .*\n$")

    def test_when_no_rank_joins_one_line_says_so(self):
        self.assertEqual(self.run_job("run", "-n", "1", "--stats", "true"),
                         (0, "", "tonari: --stats: no rank has joined the job, so there are no counters to print\n"))


if __name__ == "__main__":
    unittest.main()
