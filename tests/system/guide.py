"""README and the guides under docs/guide are true: their programs print the output stated there, and the calls and
settings that they name exist."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

from harness.guide import Guide
from harness.bench import BenchTest
from harness.jobs import BIN, PATIENCE, PROGRAMS, TONARI, JobTest, eventually

ROOT = pathlib.Path(__file__).parents[2]


def alike(status):
    """Returns the output of `tonari status` without its process ids, times and widths of columns, which vary."""
    without_times = re.sub(r"\d+\.\d s", "N s", status)
    return [re.sub(r"\d{3,}", "PID", " ".join(line.split())) for line in without_times.splitlines()]


class GuideTest:
    """Tests that every guide must pass. `name` is the name of its file, `calls` the expression before the name of a
    call, and `calls_min` how many different calls the guide must exceed."""

    calls_min = 10
    folder_of_guide = "docs/guide"

    def setUp(self):
        super().setUp()
        self.guide = Guide(ROOT / self.folder_of_guide / f"{self.name}.md")
        self.folder = tempfile.TemporaryDirectory(prefix="guide-")
        self.addCleanup(self.folder.cleanup)

    def place_of(self, number):
        """A directory in which the program that was extracted is this example, by either name that the guide uses."""
        place = pathlib.Path(self.folder.name) / str(number)
        place.mkdir()
        for name in ("program", "piece"):
            (place / name).symlink_to(os.path.abspath(os.path.join(PROGRAMS, f"guide_{self.name}")))
        return place

    def test_every_example_of_the_guide_prints_the_output_stated_there(self):
        for number, example in enumerate(self.guide.examples):
            with self.subTest(example.code):
                self.assertIsNotNone(example.command, "nothing says what it prints")
                self.assertTrue(example.command.startswith("tonari "), example.command)
                if example.command.startswith("tonari run "):
                    self.check_run(number, example)
                else:
                    self.check_status(number, example)

    def check_run(self, number, example):
        path = f"{os.path.abspath(BIN)}:{os.environ['PATH']}"
        ended = subprocess.run(["sh", "-c", example.command], cwd=self.place_of(number), capture_output=True, text=True,
                               timeout=PATIENCE, env={**self.environment(), "PATH": path})
        # Ranks print in no order.
        self.assertEqual((sorted(ended.stdout.splitlines()), ended.returncode), (sorted(example.printed), 0),
                         ended.stderr)

    def check_status(self, number, example):
        job = self.start("run", "-n", 2, "./piece", cwd=self.place_of(number))

        def shown():
            status = subprocess.run([TONARI, "status", str(job.pid)], capture_output=True, text=True, timeout=PATIENCE)
            return alike(status.stdout)

        wanted = alike("\n".join(example.printed))
        try:
            eventually(lambda: shown() == wanted, f"status shows {wanted}")
        except AssertionError:
            self.assertEqual(shown(), wanted)
        job.signal(2)
        job.end()

    def test_the_calls_that_the_guide_names_exist(self):
        headers = "".join(path.read_text() for path in (ROOT / "include" / "tonari").glob("*.hpp"))
        named = set(re.findall(rf"\b{self.calls}([a-z_]+)\(", self.guide.text))
        self.assertGreater(len(named), self.calls_min)
        self.assertEqual({name for name in named if not re.search(rf"\b{name}\(", headers)}, set())


class Readme(GuideTest, JobTest):
    name = "README"
    folder_of_guide = ""
    calls = r"world\."
    calls_min = 2


class Windows(GuideTest, JobTest):
    name = "windows"
    calls = r"window\."


class SharedMemory(GuideTest, JobTest):
    name = "shared-memory"
    calls = "share::"
    calls_min = 1


class Messages(GuideTest, JobTest):
    name = "messages"
    calls = r"world\."

    def test_the_settings_that_the_guide_names_exist(self):
        shown = subprocess.run([TONARI, "info", "--settings"], capture_output=True, text=True, timeout=PATIENCE).stdout
        named = set(re.findall(r"TONARI_[A-Z_]+", self.guide.text))
        self.assertTrue(named)
        self.assertEqual({name for name in named if name not in shown}, set())


@unittest.skipUnless(os.path.exists(os.path.join(BIN, "..", "libexec", "tonari", "bench")), "built without benchmarks")
class Measure(BenchTest):
    """The commands of the guide work, one after the other in one folder, and its tables name what there is."""

    # These take hours or minutes; the test runs less of the same.
    shorter = {"tonari bench papers -o results": "tonari bench papers queue-depth --quick -o results",
               "tonari bench all -o results": "tonari bench all barrier pingpong --quick -o results"}

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
