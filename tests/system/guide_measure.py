"""The guide "measure your cluster" is true: its commands work, and it names what there is."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

from harness.bench import BenchTest
from harness.jobs import TONARI

ROOT = pathlib.Path(__file__).parents[2]


class Measure(BenchTest):
    """The commands of the guide work, one after the other in one folder, and its tables name what there is."""

    # These take hours or minutes; the test runs less of the same.
    shorter = {"tonari bench papers -o results": "tonari bench papers queue-depth --quick -o results",
               "tonari bench all -o results": "tonari bench all diff queue-depth --quick -o results"}

    def setUp(self):
        super().setUp()
        self.text = (ROOT / "docs/guide/measure.md").read_text()

    def test_the_commands_of_the_guide_work(self):
        blocks = re.findall(r"^```sh\n(.*?)^```$", self.text, re.MULTILINE | re.DOTALL)
        commands = [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines()]
        self.assertGreater(len(commands), 8)
        self.assertEqual(set(self.shorter) - set(commands), set())
        for command in commands:
            with self.subTest(command):
                words = shlex.split(self.shorter.get(command, command))
                self.assertEqual(words[0], "tonari")
                if "--json" in words and "--quick" not in words:
                    words.append("--quick")
                done = subprocess.run([TONARI, *words[1:]], cwd=self.folder, capture_output=True, text=True,
                                      env=self.environment())
                self.assertEqual(done.returncode, 0, done.stderr)
        made = {"report.html", "change.html", "pingpong.json", "results"}
        self.assertEqual(made - set(os.listdir(self.folder)), set())

    def test_the_guide_names_all_questions_and_no_others(self):
        listed = self.run_job("bench")[1]
        questions = set(re.findall(r"^  ([\w-]+) +\S", listed, re.MULTILINE))
        table = re.search(r"^\| you want to know .*?\n\n", self.text, re.MULTILINE | re.DOTALL)[0]
        named = {name for row in table.strip().splitlines()[2:] for name in re.findall(r"`([\w-]+)`", row.split("|")[2])}
        # The guide leaves out `diff`, which measures a part of shared memory.
        self.assertEqual(named, questions - {"diff"})

    def test_the_conditions_of_the_guide_have_the_right_form(self):
        run = self.bench("pingpong", "--sizes", "8,4K")[0]
        path = os.path.join(self.folder, "run.json")
        with open(path, "w") as file:
            json.dump(run, file)
        table = self.text[self.text.index("| condition |"):]
        conditions = re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)
        self.assertGreater(len(conditions), 3)
        for condition in conditions:
            with self.subTest(condition):
                status, _, error = self.run_job("report", path, "--fail-if", condition)
                self.assertIn(status, (0, 2, 3))
                self.assertNotIn("must be", error)  # no rival was measured, so ratios may be refused


if __name__ == "__main__":
    unittest.main()
