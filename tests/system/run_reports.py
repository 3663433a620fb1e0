"""`tonari status` and `tonari info`."""

import json
import os
import re
import subprocess
import unittest

from harness.jobs import PROGRAMS, TONARI, JobTest, eventually


def tonari(*arguments, **options):
    return subprocess.run([TONARI, *map(str, arguments)], capture_output=True, text=True, timeout=30, **options)


class Status(JobTest):
    def test_status_shows_each_rank_and_its_phase(self):
        job = self.start_actors(3, "say", "{rank} is {pid}", "only", 2, "wait", "join", "only", 0, "leave", "wait")
        job.output.wait_for("waiting")
        for rank in (0, 1):
            self.await_phase(job, rank, "joined")
        pids = [job.pid_of(rank) for rank in range(3)]
        shown = tonari("status", job.pid)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertRegex(shown.stdout, rf"^3 ranks, started by `tonari run` \(pid {job.pid}\) \d+\.\d s ago\n")
        self.assertRegex(shown.stdout, rf"\n +0 +{pids[0]} +joined ")
        self.assertRegex(shown.stdout, r"\n +2 +- +absent ")
        job.process.terminate()
        job.end()

    def test_status_shows_what_a_rank_waits_for(self):
        job = self.start_actors(2, "say", "{rank} is {pid}", "join", "only", 0, "leave", "wait")
        job.output.wait_for("waiting")
        self.await_phase(job, 0, "leaving")
        shown = tonari("status", job.pid).stdout
        self.assertRegex(shown, r"\n +0 +\d+ +leaving +others to leave +\d+\.\d s ")
        self.assertRegex(shown, r"\n +1 +\d+ +running ")
        timeless = lambda text: re.sub(r" +\d+\.\d s", "", text)
        self.assertEqual(timeless(tonari("status", job.pid_of(1)).stdout), timeless(shown), "asked of a rank")
        job.process.terminate()
        job.end()

    def test_status_shows_a_circle_of_ranks_that_wait_for_each_other(self):
        job = self.start("run", "-n", "3", os.path.join(PROGRAMS, "job_circle"))
        job.output.wait_for("waits", 3)
        shown = eventually(lambda: re.search(r"(?s).*a circle: .*", tonari("status", job.pid).stdout), "the circle")[0]
        self.assertRegex(shown, r"\n +0 +\d+ +running +receive from 1, tag 7 +\d+\.\d s +1 \(1\) ")
        circle = "a circle: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0\n"
        self.assertTrue(shown.endswith(circle), shown)
        job.process.terminate()
        job.end()

    def test_status_refuses_processes_that_belong_to_no_job(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        for process, text in ((gone.pid, rf"there is no process {gone.pid}"),
                              (os.getpid(), rf"process {os.getpid()} is neither a `tonari run` nor one of its ranks"),
                              (0, "PID: must be a process id from 1 to 4194304, not '0'"), (-5, "not '-5'"),
                              ("x", "not 'x'"), (10**20, "not '1000")):
            with self.subTest(process=process):
                shown = tonari("status", process, env=self.environment())
                self.assertEqual((shown.returncode, shown.stdout), (2, ""))
                self.assertRegex(shown.stderr, rf"^tonari status: .*{text}")

    def test_status_without_a_process_id_lists_the_jobs(self):
        job = self.start_actors(2, "join", "wait")
        job.output.wait_for("waiting", 2)
        shown = tonari("status")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertRegex(shown.stdout, rf"(?m)^ *{job.pid} +2 +\d+\.\d s +\S*tonari run -n 2 ")
        job.process.terminate()
        job.end()
        self.assertNotRegex(tonari("status").stdout, rf"(?m)^ *{job.pid} ")

    def test_status_refuses_process_1_for_the_reason_that_applies_to_the_user(self):
        # Process 1 is root's.
        shown = tonari("status", 1)
        self.assertEqual(shown.returncode, 2)
        as_root = "process 1 is neither a `tonari run` nor one of its ranks: give the process id of one"
        self.assertIn(as_root if os.geteuid() == 0 else "process 1 belongs to another user", shown.stderr)

    def test_status_refuses_a_job_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root becomes another user")
        job = self.start_actors(1, "join", "wait")
        job.output.wait_for("waiting")
        shown = tonari("status", job.pid, user=65534)
        self.assertEqual(shown.returncode, 2)
        self.assertRegex(shown.stderr, "belongs to user 0, and you are user 65534")
        job.process.terminate()
        job.end()


class Info(JobTest):
    def test_info_shows_each_feature_as_ok_or_with_a_remedy(self):
        shown = tonari("info")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        features = shown.stdout.split("features\n")[1].splitlines()
        names = {line[2:22].strip() for line in features}
        self.assertLessEqual({"userfaultfd", "process_vm", "Yama", "locked memory", "descriptors", "huge pages",
                              "memfd", "pidfd", "idle processors"}, names)
        for line in features:
            self.assertTrue(line[22:].startswith("ok") or ";" in line, line)

    def test_info_prints_the_machine_and_its_features_as_json(self):
        told = json.loads(tonari("info", "--json").stdout)
        self.assertIn("cores", told["machine"])
        self.assertTrue(all(set(feature) == {"name", "works", "text"} for feature in told["features"]))

    def test_info_works_for_an_ordinary_user(self):
        if os.geteuid() != 0:
            self.skipTest("the other tests run without privileges already")
        shown = tonari("info", user=65534)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))

    def test_info_lists_each_setting_with_its_value_and_origin(self):
        told = json.loads(tonari("info", "--settings", "--json", env=self.environment(TONARI_RING_SLOTS="256")).stdout)
        settings = {setting["name"]: setting for setting in told["settings"]}
        self.assertEqual(settings["TONARI_RING_SLOTS"]["value"], "256")
        self.assertEqual(settings["TONARI_RING_SLOTS"]["from"], "environment")
        self.assertEqual(settings["TONARI_SPLIT"]["value"], settings["TONARI_SPLIT"]["default"])
        table = tonari("info", "--settings", env=self.environment()).stdout
        for name in settings:
            self.assertIn(name, table)
        self.assertIn("An empty variable counts as unset", table)

    def test_info_names_an_unknown_setting_with_the_nearest_known_one(self):
        env = self.environment(TONARI_RING_SLOT="64", TONARI_RANK="0")
        for words in (["info"], ["info", "--settings"], ["info", "--json"], ["info", "--settings", "--json"]):
            with self.subTest(words=words):
                shown = tonari(*words, env=env)
                self.assertEqual((shown.returncode, shown.stderr), (
                    0, "tonari info: TONARI_RING_SLOT is set, but there is no such setting; the nearest is "
                       "TONARI_RING_SLOTS\n"))

    def test_info_describes_the_machine_and_names_a_wrong_setting(self):
        shown = tonari("info", env=self.environment(TONARI_SPLIT="many"))
        self.assertEqual(shown.returncode, 0)
        self.assertIn("tonari info: TONARI_SPLIT=many", shown.stderr)
        self.assertIn("features", shown.stdout)

    def test_info_refuses_a_wrong_setting_and_names_it(self):
        shown = tonari("info", "--settings", env=self.environment(TONARI_SPLIT="many"))
        self.assertEqual(shown.returncode, 2)
        self.assertIn("TONARI_SPLIT=many", shown.stderr)


if __name__ == "__main__":
    unittest.main()
