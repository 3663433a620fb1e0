"""scripts/figures --check finds numbers and pictures that the stored run does not have."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIGURES = ROOT / "scripts" / "figures"


class FiguresTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copy(ROOT / "README.md", self.root)
        (self.root / "docs").mkdir()
        shutil.copy(ROOT / "docs" / "results.md", self.root / "docs")
        for name in ("results", "figures"):
            shutil.copytree(ROOT / "docs" / name, self.root / "docs" / name)

    def check(self):
        """Returns the lines that the check prints about a copy of the documents; none if it finds no fault."""
        done = subprocess.run([sys.executable, FIGURES, "--check", "--root", self.root], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        if done.returncode == 0:
            return []
        self.assertEqual(done.returncode, 1)
        return done.stdout.splitlines()

    def edit(self, name, pattern, replacement):
        path = self.root / name
        text, count = re.subn(pattern, replacement, path.read_text(), count=1, flags=re.DOTALL)
        self.assertEqual(count, 1)
        path.write_text(text)

    def test_the_documents_of_the_repository_are_accepted(self):
        self.assertEqual(self.check(), [])

    def test_a_changed_number_of_a_table_is_found(self):
        self.edit("README.md", r"(half round trip of 8 bytes, warm caches \| )[\d.]+", r"\g<1>0.0123")
        self.assertEqual(self.check(), ["README.md differs from docs/results: run scripts/figures"])

    def test_a_measured_number_outside_of_the_tables_is_found(self):
        self.edit("docs/results.md", r"\n## MPI programs\n", r"\g<0>\nA barrier takes 3.5 us.\n")
        self.assertEqual(self.check(), ["docs/results.md: '3.5 us' is outside of the blocks that scripts/figures writes"])
        self.edit("README.md", r"\n## Numbers\n", r"\g<0>\nIt is 2 times as fast.\n")
        self.assertIn("README.md: '2 times' is outside of the blocks that scripts/figures writes", self.check())

    def test_numbers_of_other_sections_and_of_code_are_accepted(self):
        self.edit("README.md", r"\n## Numbers\n", r"\nIt takes 3 s.\n\g<0>\nSee `sleep 3 s`.\n")
        self.assertEqual(self.check(), [])

    def test_a_changed_result_is_found(self):
        path = self.root / "docs" / "results" / "pingpong.json"
        report = json.loads(path.read_text())
        for point in report["series"][0]["points"]:
            point["median"] *= 2
        path.write_text(json.dumps(report))
        found = self.check()
        self.assertIn("README.md differs from docs/results: run scripts/figures", found)
        self.assertIn("docs/results.md differs from docs/results: run scripts/figures", found)
        self.assertIn("docs/figures/overview.svg shows other results than docs/results: run scripts/figures", found)

    def test_runs_of_two_machines_are_refused(self):
        path = self.root / "docs" / "results" / "match.json"
        report = json.loads(path.read_text())
        report["machine"]["processor"] = "another one"
        path.write_text(json.dumps(report))
        self.assertIn("runs of several machines", "\n".join(self.check()))

    def test_a_missing_run_and_an_unknown_block_are_named(self):
        (self.root / "docs" / "results" / "lock.json").unlink()
        self.assertIn("docs/results/lock.json is missing", "\n".join(self.check()))
        self.edit("README.md", "figures: numbers", "figures: nothing")
        self.assertIn("README.md: there is no block nothing; there are machine, numbers, ", "\n".join(self.check()))

    def test_pictures_are_complete_and_no_others_are_there(self):
        (self.root / "docs" / "figures" / "match.svg").unlink()
        (self.root / "docs" / "figures" / "other.svg").write_text("<svg/>")
        found = self.check()
        self.assertIn("docs/figures/match.svg is missing: run scripts/figures", found)
        self.assertIn("docs/figures/other.svg is not in PICTURES of scripts/figures", found)


if __name__ == "__main__":
    unittest.main()
