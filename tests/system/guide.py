"""README and the guides under docs/guide are true: their programs print the output stated there, and the calls and
settings that they name exist."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from harness.guide import Guide
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


if __name__ == "__main__":
    unittest.main()
