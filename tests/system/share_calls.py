"""System calls on shared memory that is not here: of root, and of users to whom the kernel tells only faults outside
system calls."""

import json
import os
import re
import subprocess
import unittest

from harness.far import NOBODY
from harness.jobs import PROGRAMS, TONARI, JobTest, has_sanitizer

PROGRAM = os.path.join(PROGRAMS, "shared_calls")
APART = ["--apart", "memory"]
ALL_RIGHT = re.compile(r"rank 1: (\d+) of \1 calls\n")


class Calls(JobTest):
    def setUp(self):
        super().setUp()
        probe = subprocess.run([TONARI, "info", "--json"], capture_output=True, text=True, check=True, user=self.user)
        features = {feature["name"]: feature for feature in json.loads(probe.stdout)["features"]}
        self.all_faults_told = features["userfaultfd"]["works"]

    def run_calls(self, *words, way=(), **settings):
        return self.run_job("run", "-n", 2, *way, *words, env=self.environment(**settings))

    def test_system_calls_work_on_absent_pages(self):
        for way in ([], APART, ["--apart", "network", "--network", "tcp"]):
            with self.subTest(way=way):
                status, output, error = self.run_calls(PROGRAM, way=way)
                self.assertEqual((status, error), (0, ""), output)
                self.assertRegex(output, ALL_RIGHT)
                self.assertIn("rank 0: all is there\n", output)


class CallsOfAnOrdinaryUser(Calls):
    user = NOBODY

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        if has_sanitizer(PROGRAM):
            self.skipTest("a sanitizer's library wants to be the first that is loaded")
        super().setUp()
        if self.all_faults_told:
            self.skipTest("here the kernel tells every user all faults")

    def test_programs_that_a_script_starts_have_the_wrappers(self):
        status, output, error = self.run_calls("sh", "-c", 'exec "$0"', PROGRAM, way=APART)
        self.assertEqual((status, error), (0, ""), output)
        self.assertRegex(output, ALL_RIGHT)

    def test_preloads_of_the_environment_are_kept(self):
        status, output, error = self.run_calls("sh", "-c", 'echo "$LD_PRELOAD"', way=APART, LD_PRELOAD="libm.so.6")
        self.assertEqual((status, error), (0, ""))
        self.assertRegex(output, r"\A(\S+/libtonari_share_preload\.so:libm\.so\.6\n){2}\Z")

    def test_preloads_given_by_the_option_env_are_kept(self):
        words = ["--env", "LD_PRELOAD=libm.so.6", "sh", "-c", "env | grep -a LD_PRELOAD"]
        status, output, error = self.run_calls(*words, way=APART)
        self.assertEqual((status, error), (0, ""))
        self.assertRegex(output, r"\A(LD_PRELOAD=\S+/libtonari_share_preload\.so:libm\.so\.6\n){2}\Z")

    def test_without_the_wrappers_system_calls_fail_and_the_log_says_why(self):
        status, output, error = self.run_calls(PROGRAM, way=APART, TONARI_WRAP_CALLS="off", TONARI_LOG="info")
        self.assertEqual(status, 0, error)
        self.assertIn("pwrite (Bad address)", output)
        self.assertRegex(error, r"system calls that meet shared memory which is not here yet will fail: start the "
                                r"program with tonari run, .*vm\.unprivileged_userfaultfd=1")

    def test_system_calls_that_bypass_libc_fail_on_absent_pages(self):
        status, output, _ = self.run_calls(PROGRAM, "raw", way=APART)
        self.assertEqual((status, output), (0, "rank 1: Bad address\n"))

    def test_no_wrappers_are_preloaded_on_a_single_host(self):
        status, output, _ = self.run_calls("sh", "-c", 'echo "<$LD_PRELOAD>"')
        self.assertEqual((status, output), (0, "<>\n<>\n"))


if __name__ == "__main__":
    unittest.main()
