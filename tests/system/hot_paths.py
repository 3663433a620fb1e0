"""The program that scripts/hot-paths measures goes through each of its paths, as often as it is told."""

import collections
import os
import subprocess
import tempfile
import unittest

from harness.jobs import BIN, JobTest

PROGRAM = os.path.join(BIN, "..", "libexec", "tonari", "hot_paths")
ROUNDS = 3


class HotPaths(JobTest):
    def setUp(self):
        super().setUp()
        if not os.access(PROGRAM, os.X_OK):
            self.skipTest("the benchmarks are not built")
        listed = subprocess.run([PROGRAM, "list"], capture_output=True, text=True, check=True).stdout
        self.paths = [line.split() for line in listed.splitlines()]

    def run_paths(self, names, *way, **settings):
        with tempfile.TemporaryDirectory(prefix="hot-paths-") as folder:
            status, output, error = self.run_job("run", "-n", 2, *way, PROGRAM, ROUNDS, os.path.join(folder, "turns"),
                                                 *names, env=self.environment(**settings))
        self.assertEqual((status, error), (0, ""))
        rows = [line.split(" ") for line in output.splitlines()]
        measured = collections.Counter(row[2] for row in rows if row[0] == "measured")
        self.assertEqual({part.split(":")[0] for part in measured}, set(names))
        self.assertEqual({count % ROUNDS for count in measured.values()}, {0}, measured)

    def test_paths_within_a_host(self):
        self.run_paths([name for kind, name in self.paths if kind == "local"], TONARI_SERVICE_THREAD="off")

    def test_paths_that_wait(self):
        names = [name for kind, name in self.paths if kind == "waiting"]
        for way in (["--apart", "memory"], ["--apart", "network", "--network", "tcp"]):
            with self.subTest(way=way):
                self.run_paths(names, *way)


if __name__ == "__main__":
    unittest.main()
