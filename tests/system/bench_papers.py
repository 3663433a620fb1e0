"""The papers' tables, figures and findings: their data, `tonari bench papers`, and their sections of `tonari report`."""

import glob
import json
import os
import re
import shutil
import unittest

import jsonschema

from harness.bench import BenchTest
from harness.jobs import BIN

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
NAMES = sorted(os.listdir(os.path.join(BENCH, "suites")))


def papers():
    read = []
    for path in sorted(glob.glob(os.path.join(BENCH, "papers", "*.json"))):
        with open(path) as file:
            read.append(json.load(file))
    return read


class Data(BenchTest):
    """Rows and findings name cases and metrics of benchmarks, so a renamed case would lose them silently."""

    # Words for hardware that a machine may lack.
    HARDWARE = re.compile("verbs|share a cache")
    # Further runs, with the cases and x of long runs that short ones leave out.
    RUNS = {
        "coherence": ["--cases guarded-read,invalidate,update --readers 1,2,3 --apart network --network tcp,rc"],
        "contention": ["--apart network"],
        "himeno": ["--cases guarded --ranks 1,2,3,4 --apart network --network tcp,rc"],
        "lu": ["--sweep ranks -n 4"],
        "overlap": ["--sweep blocks", "--sweep ranks -n 4", "--sizes 100 --computation once,tenfold"],
        "pingpong": ["--sizes 8K,16K --buffers warm"],
        "series": ["--apart network --network tcp"],
        "stream": ["--cases remote --local 20,100 --apart network --network tcp"],
        "window": ["--sizes 4K-12K+4K --operations push --owner waiting"],
    }

    def setUp(self):
        super().setUp()
        self.papers = papers()
        self.findings = [finding for paper in self.papers for finding in paper["findings"]]
        self.rows = [row for paper in self.papers for exhibit in paper["exhibits"] for row in exhibit["rows"]]

    def test_every_file_has_the_shape_of_the_schema(self):
        with open(os.path.join(BENCH, "papers.schema.json")) as file:
            schema = json.load(file)
        self.assertEqual([paper["paper"] for paper in self.papers], ["LHS", "DLM", "MLC-1", "Paragon", "Fagus"])
        for paper in self.papers:
            jsonschema.validate(paper, schema)

    def test_the_schema_refuses_rows_without_ours_or_a_reason(self):
        with open(os.path.join(BENCH, "papers.schema.json")) as file:
            schema = json.load(file)
        for broken in ({"label": "a"}, {"label": "a", "ours": {"case": "c", "metric": "m"}},
                       {"label": "a", "needs": "n", "said": "about"}, {"label": "a", "needs": "n", "other": 1}):
            paper = json.loads(json.dumps(self.papers[0]))
            paper["exhibits"][0]["rows"].append(broken)
            with self.subTest(row=broken), self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(paper, schema)

    def test_rows_of_an_exhibit_and_findings_have_distinct_names(self):
        for paper in self.papers:
            for exhibit in paper["exhibits"]:
                labels = [row["label"] for row in exhibit["rows"]]
                self.assertEqual(len(labels), len(set(labels)), exhibit["name"])
        says = [finding["says"] for finding in self.findings]
        self.assertEqual(len(says), len(set(says)))

    def quantities(self, name):
        """Each quantity of a benchmark, with the text that contains it, unless it needs special hardware."""
        for finding in self.findings:
            if finding["benchmark"] == name and not self.HARDWARE.search(finding.get("needs", "")):
                for quantity in filter(None, (finding["ours"], finding.get("against"))):
                    yield finding["says"], quantity
        for row in self.rows:
            if row.get("ours", {}).get("benchmark") == name and not self.HARDWARE.search(row.get("needs", "")):
                yield row["label"], row["ours"]

    def is_measured(self, quantity, report):
        for key, value in quantity.get("with", {}).items():
            said = report["parameters"].get(key)
            if (said if isinstance(said, str) else json.dumps(said)) != value:
                return False
        for series in report["series"]:
            case = quantity["case"]
            is_case = series["case"].startswith(case[:-1]) if case.endswith("*") else series["case"] == case
            if (is_case and series["system"] == quantity.get("system", "tonari") and
                    series["metric"] == quantity["metric"] and quantity.get("over", series["x"]) == series["x"]):
                x = quantity.get("x", "last")
                if isinstance(x, str) or x in [point["x"] for point in series["points"]]:
                    return True
        return False

    def test_every_quantity_is_measured(self):
        names = {finding["benchmark"] for finding in self.findings}
        names |= {row["ours"]["benchmark"] for row in self.rows if "ours" in row}
        self.assertLessEqual(names, set(NAMES))
        for name in sorted(names):
            reports = []
            for arguments in ("", *self.RUNS.get(name, ())):
                report, output, _ = self.bench(name, *arguments.split())
                self.assertLessEqual({verdict["outcome"] for verdict in report["verdicts"]}, {"not decided"})
                for verdict in report["verdicts"]:
                    self.assertIn(verdict["finding"], output)
                reports.append(report)
            for text, quantity in self.quantities(name):
                with self.subTest(benchmark=name, of=text):
                    self.assertTrue(any(self.is_measured(quantity, report) for report in reports), quantity)

    def test_findings_are_judged_by_several_rounds(self):
        report, output, _ = self.bench("queue-depth", "--rounds", "3")
        verdicts = [verdict for verdict in report["verdicts"] if verdict["finding"].startswith("an exchange between")]
        self.assertEqual(len(verdicts), 1)
        self.assertIn(verdicts[0]["outcome"], ("holds", "does not hold", "no difference seen"))
        self.assertEqual(verdicts[0]["at"], "ranks 16")
        self.assertIn(f"{verdicts[0]['outcome']}: an exchange between all", output)


class Command(BenchTest):
    """`tonari bench papers`."""

    def run_papers(self, *arguments):
        status, output, error = self.run_job("bench", "papers", "--quick", "-o", self.folder, *arguments)
        self.assertEqual(status, 0, error)
        return output

    def test_two_benchmarks_fill_their_rows_and_the_others_are_only_named(self):
        output = self.run_papers("coherence", "queue-depth")
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["coherence-network.json", "coherence-network.txt", "coherence.json", "coherence.txt",
                          "papers.md", "queue-depth.json", "queue-depth.txt"])
        self.assertIn("Fagus, figure 5 (section 4.2): time of a write that invalidates", output)
        self.assertRegex(output, r"#1 over IP, 2 nodes +- +\d\S* us ")
        self.assertRegex(output, r"#5 over IP, 4 nodes +- +\d\S* us ")
        self.assertIn("Fagus, not measured: figure 7\n", output)
        self.assertIn("LHS, not measured: figure 6, text\n", output)
        self.assertNotIn("Paragon", output)
        self.assertRegex(output, r"an exchange between all .*\n(.*\n)?    not decided: \S+x, ranks 16 \(queue-depth\)")
        self.assertIn("one round decides nothing", output)
        with open(os.path.join(self.folder, "papers.md")) as file:
            written = file.read()
        self.assertRegex(written, r"\| #1 over IP, 2 nodes \| - \| \d\S* us \| - \| - \| - \|\n")
        self.assertRegex(written, r"\| #2 over verbs, 2 nodes \| - \| .* \| 0\.5x \| ")
        for table in re.findall(r"(?m)(?:^\|.*\n)+", written):
            self.assertEqual(len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}), 1)

    def test_results_of_an_earlier_call_stay_in_the_tables(self):
        self.run_papers("coherence")
        output = self.run_papers("queue-depth")
        self.assertRegex(output, r"#1 over IP, 2 nodes +- +\d\S* us ")
        self.assertIn("(queue-depth)", output)

    def test_all_writes_the_tables_too(self):
        status, output, error = self.run_job("bench", "all", "--quick", "-o", self.folder, "queue-depth")
        self.assertEqual(status, 0, error)
        self.assertIn(f"the papers' tables: {self.folder}/papers.md\n", output)
        self.assertIn("(queue-depth)", output)

    def test_a_benchmark_of_no_paper_is_refused(self):
        error = self.refused("papers", "barrier", "-o", self.folder)
        self.assertIn("no benchmark of the papers is called 'barrier'; there are pingpong, series", error)

    def test_missing_or_broken_data_are_refused_before_measuring(self):
        program = os.path.join(self.folder, "bench")
        results = os.path.join(self.folder, "results")
        data = os.path.join(self.folder, "papers")
        installed = os.path.join(BIN, "..", "libexec", "tonari")
        shutil.copy(os.path.join(installed, "bench"), program)
        os.symlink(os.path.join(installed, "bench-worker"), os.path.join(self.folder, "bench-worker"))

        def refused(*arguments):
            status, output, error = self.run_job(*arguments, command=(program,))
            self.assertEqual((status, output, len(error.splitlines())), (2, "", 1), error)
            return error

        calls = (("bench", "papers", "--quick", "-o", results), ("bench", "queue-depth", "--quick"))
        for call in calls:
            self.assertRegex(refused(*call), f"{data} has no findings of the papers .*; install tonari again")
        os.mkdir(data)
        path = os.path.join(data, "1-lhs.json")
        for text, why in (("{", "parse error"), ('{"paper": "LHS"}', "'title' not found")):
            with open(path, "w") as file:
                file.write(text)
            for call in calls:
                self.assertRegex(refused(*call), f"{path} does not describe a paper .*{why}.*; install tonari again")


class Sections(BenchTest):
    """The papers in `tonari report`."""

    def test_a_page_has_a_section_for_each_paper_that_was_measured(self):
        results = os.path.join(self.folder, "queue-depth-two-rounds.json")
        self.bench("queue-depth", "--rounds", "2")
        os.rename(os.path.join(self.folder, "report.json"), results)
        pages = {}
        for form in ("html", "markdown"):
            page = os.path.join(self.folder, form)
            status, _, error = self.run_job("report", results, "-o", page, "--format", form)
            self.assertEqual(status, 0, error)
            with open(page) as file:
                pages[form] = file.read()
        html = pages["html"]
        self.assertIn('<a href="#paper-LHS">Paper: LHS</a>', html)
        self.assertIn('<section id="paper-LHS" aria-labelledby="paper-LHS-title"><h2 id="paper-LHS-title">', html)
        self.assertIn("<caption>LHS: findings</caption>", html)
        self.assertIn("<caption>table 1 (section 5.2.2): hardware of the search", html)
        self.assertIn('<th scope="row">#1 ALPU, 128 messages: slices</th><td>5215</td><td>-</td><td>40.4x</td>', html)
        self.assertIn("<strong>Not measured:</strong> figure 6, text", html)
        self.assertNotIn("Paragon", html)
        self.assertIn(">queue-depth-two-rounds</h2>", html)
        self.assertIn("<td>queue-depth-two-rounds</td>", html)
        self.assertIn('<th scope="col">cannot be judged here</th></tr></thead>\n<tbody>\n<tr><th scope="row">LHS</th>', html)
        self.assertIn("## LHS\n", pages["markdown"])
        self.assertIn("| #1 ALPU, 128 messages: slices | 5215 | - | 40.4x | - |", pages["markdown"])


if __name__ == "__main__":
    unittest.main()
