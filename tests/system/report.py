"""`tonari report`: the page, its other forms, what changed between two runs, and what is refused."""

import copy
import csv
import io
import json
import os
import re
import shutil
import subprocess
import unittest
from html.parser import HTMLParser

from harness.bench import BenchTest
from harness.jobs import BIN

CHARTS = os.path.join(BIN, "..", "bench", "report", "charts")
SCRIPT = os.path.join(BIN, "..", "libexec", "tonari", "report", "charts.js")
PLAYWRIGHT = os.path.join(CHARTS, "node_modules", "playwright-core")
DRIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness", "page.mjs")
HOSTILE = "</script><img src=x onerror=\"window.alerted=true\">'|,`id`"
VOID = {"meta", "link", "br", "img", "hr", "input"}


def point(x, rounds):
    rounds = [float(value) for value in rounds]
    middle = sorted(rounds)[len(rounds) // 2]
    made = {"x": x, "min": min(rounds), "median": middle, "p99": max(rounds), "max": max(rounds), "mean": middle,
            "stddev": 0.1, "n": len(rounds), "rounds": rounds, "samples": rounds}
    if len(rounds) > 2:
        made["interval"] = [min(rounds), max(rounds)]
    return made


def series(system, values, case="warm", metric="latency", unit="us"):
    return {"system": system, "case": case, "metric": metric, "unit": unit, "x": "bytes",
            "better": "low", "points": [point(x, rounds) for x, rounds in values.items()]}


def compared(rival, ratio, x=8, differs=True):
    return {"system": "tonari", "with": rival, "case": "warm", "metric": "latency", "x": x, "ratio": ratio,
            "low": ratio * 0.9, "high": ratio * 1.1, "pairs": 3, "smallest_difference": 0.1, "differs": differs}


def made_up(benchmark="pingpong", rival="openmpi-4.1.4", factor=1.0):
    ours = {x: [factor * x * spread for spread in (1.0, 1.01, 1.02)] for x in (8, 4096, 1048576)}
    theirs = {x: [2 * value for value in values] for x, values in ours.items()}
    return {"benchmark": benchmark, "version": 2,
            "machine": {"processor": "made up", "architecture": "x86_64", "cores": 2, "caches": [], "memory_bytes": 1,
                        "numa_nodes": 1, "virtual": False, "governor": "", "kernel": "Linux", "mitigations": {},
                        "compiler": "none", "tonari": "0.1.0", "date": "2026-01-01T00:00:00Z"},
            "unfit": ["2 other programs <run>"], "command": ["bench", benchmark, "--sizes", "8 9", "--json=a.json"],
            "parameters": {"rounds": 3, "quick": True, "workers": {}, "commands": []},
            "failed": [{"system": "mpich", "cause": "ended with status 137"}],
            "series": [series("tonari", ours), series(rival, theirs), series("ring", ours)], "again": [],
            "comparisons": [compared(rival, 0.5), compared(rival, 0.8, 4096, False), compared("ring", 2.0)],
            "verdicts": [{"finding": "heads in line are faster", "paper": "LHS", "section": "5.1", "outcome": "holds",
                          "ratio": 41.0, "low": 38.0, "high": 44.0, "printed": 43.0}]}


class Page(HTMLParser):
    """The elements of a page, which must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.figures, self.text = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag == "figure":
            self.figures.append([])
        elif "figure" in self.open:
            self.figures[-1].append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes another element")

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text += data


class ReportTest(BenchTest):
    def store(self, report, name="one.json"):
        self.check_shape(report)
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            json.dump(report, file)
        return path

    def report(self, *arguments, name="report.html"):
        path = os.path.join(self.folder, name)
        status, output, error = self.run_job("report", *arguments, "-o", path)
        self.assertEqual((status, output, error), (0, "", ""))
        with open(path) as file:
            return file.read()


class Html(ReportTest):
    def check(self, text):
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertNotEqual(page.figures, [])
        for inside in page.figures:
            self.assertEqual((inside.count("svg"), inside.count("table")), (1, 1))
        for tag, attributes in page.tags:
            self.assertFalse(set(attributes) & {"src", "onerror", "action"}, tag)
            self.assertTrue(attributes.get("href", "#").startswith("#"), attributes)
            if tag == "th":
                self.assertIn(attributes.get("scope"), ("col", "row"))
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual({tag for tag, _ in page.tags} & {"nav", "main", "header", "footer", "img", "link"},
                         {"nav", "main", "header", "footer"})
        return page

    def test_a_page_has_overview_verdicts_tables_command_and_machine(self):
        page = self.check(self.report(self.store(made_up())))
        for expected in ("better in 1, worse in 0, not seen to differ in 1", "0.632x", "0.569 to 0.696", "0.500 to 0.800",
                         "heads in line are faster", "41.0x [38.0, 44.0]", "43.0x", "ended with status 137", "4 KiB",
                         "tonari bench pingpong --sizes '8 9'\n", "made up", "2 other programs <run>"):
            self.assertIn(expected, page.text)

    def test_a_file_from_before_commands_were_stored_is_read(self):
        old = made_up()
        del old["command"]
        for one in old["series"]:
            del one["better"]
        path = os.path.join(self.folder, "old.json")
        with open(path, "w") as file:
            json.dump(old, file)
        page = self.check(self.report(path))
        self.assertIn("tonari bench pingpong --quick --rounds 3 --rival openmpi-default", page.text)
        self.assertIn("No rival was measured", page.text)

    def test_the_overview_names_runs_by_their_files_and_has_no_run_with_all_memory_local(self):
        report = made_up()
        report["comparisons"].append(compared("local", 7.0))
        page = self.check(self.report(self.store(report, "pingpong-tcp.json")))
        self.assertIn("pingpong-tcp: latency", page.text)
        self.assertIn("pingpong-tcp", [text.strip() for text in page.text.split("\n")])
        self.assertIn("0.500 to 0.800", page.text)

    def test_hostile_names_are_text(self):
        for form in ("html", "markdown"):
            text = self.report(self.store(made_up(HOSTILE, HOSTILE)), "--format", form)
            self.assertNotIn("<img", text)
            self.assertNotIn("</script><", text.split("</footer>")[0])
        self.check(self.report(self.store(made_up(HOSTILE, HOSTILE))))

    def test_the_reduced_form_says_so_and_has_no_script(self):
        text = self.report(self.store(made_up()), "--plain")
        self.assertNotIn("<script", text)
        self.assertIn("reduced form", self.check(text).text)

    @unittest.skipUnless(os.path.exists(SCRIPT), "this build has no script for charts (npm)")
    def test_the_full_form_has_a_script_and_its_data(self):
        text = self.report(self.store(made_up(HOSTILE)))
        self.assertNotIn("reduced form", self.check(text).text)
        data = json.loads(re.search(r'<script type="application/json" id="charts">(.*?)</script>', text).group(1))
        self.assertEqual([chart["title"] for chart in data], ["latency: warm"])
        self.assertTrue(data[0]["xLog"] and data[0]["yLog"])

    def test_series_shows_single_measurements(self):
        page = self.check(self.report(self.store(made_up("series"))))
        self.assertIn("single measurements: warm, 4 KiB", page.text)

    def test_a_measured_report_becomes_a_page(self):
        measured, _, _ = self.bench("pingpong", "--sizes", "8,1024", "--buffers", "warm", "--rounds", "2")
        page = self.check(self.report(self.store(measured)))
        self.assertIn("latency: warm", page.text)

    def test_svg_files_are_written(self):
        folder = os.path.join(self.folder, "pictures")
        self.report(self.store(made_up()), "--svg", folder)
        for name in ("pingpong-latency-warm", "overview"):
            with open(os.path.join(folder, f"{name}.svg")) as file:
                self.assertRegex(file.read(), r"(?s)^<svg.*<style>.*</svg>\n$")

    def test_the_overview_draws_a_ratio_of_rates_inverted(self):
        def places(better):
            report = made_up()
            for one in report["series"]:
                one["better"] = better
            folder = os.path.join(self.folder, better)
            self.report(self.store(report), "--svg", folder)
            with open(os.path.join(folder, "overview.svg")) as file:
                text = file.read()
            place = re.search(r'<(?:circle cx|rect x)="([\d.]+)"', text)
            axis = re.search(r'<line class="axis" x1="([\d.]+)"', text)
            return float(place[1]), float(axis[1])

        low, one = places("low")
        high, _ = places("high")
        self.assertLess(low, one)  # half the rival's value is better on the left, and worse on the right
        self.assertGreater(high, one)


class Forms(ReportTest):
    def test_csv_has_a_line_for_each_point(self):
        rows = list(csv.DictReader(io.StringIO(self.report(self.store(made_up(rival=HOSTILE)), "--format", "csv"))))
        self.assertEqual(len(rows), 9)
        self.assertEqual(rows[3]["system"], HOSTILE)
        self.assertEqual([float(rows[3][name]) for name in ("x", "median", "low", "high")], [8, 16.16, 16, 16.32])

    def test_markdown_has_the_tables(self):
        text = self.report(self.store(made_up()), "--format", "markdown")
        self.assertIn("| 8 | 8.08 (8.00 to 8.16) | 16.2 (16.0 to 16.3) |", text)
        for table in re.findall(r"(?m)(?:^\|.*\n)+", text):
            self.assertEqual(len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}), 1)

    def test_gnuplot_has_data_and_quotes_names(self):
        text = self.report(self.store(made_up(rival=HOSTILE)), "--format", "gnuplot")
        self.assertIn("$data_1_0 << END\n8 8.08 8 8.16\n", text)
        self.assertIn("set logscale x\nset logscale y\n", text)
        self.assertIn("title '" + HOSTILE.replace("'", "''") + "' noenhanced", text)


class FailIf(ReportTest):
    def judged(self, *conditions):
        options = [option for condition in conditions for option in ("--fail-if", condition)]
        return self.run_job("report", self.store(made_up()), *options)

    def test_the_status_says_whether_a_condition_is_true(self):
        for conditions, expected in ((["8.ratio > 0.4"], 3), (["pingpong.warm.8 . ratio>0.45"], 0), (["ratio>0.6"], 3),
                                     (["8.ratio > 0.6", "latency < 1e9"], 3), (["8.ratio > 0.6", "latency < 1"], 0)):
            status, output, error = self.judged(*conditions)
            self.assertEqual((status, error), (expected, ""), conditions)
            self.assertEqual(output.count("fail-if "), len(conditions))
        self.assertIn("not decided, the limit is in the interval: pingpong, warm, 8: latency 0.500x [0.450, 0.550] to "
                      "openmpi-4.1.4", self.judged("8.ratio>0.5")[1])

    def test_a_wrong_condition_is_refused(self):
        for condition, why in (("8.ratio", "must be QUANTITY OPERATOR NUMBER"),
                               ("9.ratio > 1", "the nearest names are 'pingpong.warm.8.latency.ratio'"),
                               ("ratio to mpich > 1", "no rival that was measured is called 'mpich'; there are "
                                                      "openmpi-4.1.4, ring")):
            status, output, error = self.judged(condition)
            self.assertEqual((status, output, len(error.splitlines())), (2, "", 1))
            self.assertIn(f"--fail-if '{condition}': ", error)
            self.assertIn(why, error)


class Compare(ReportTest):
    def changed(self, new, old):
        text = self.report(self.store(new, "new/a.json"), "--compare", self.store(old, "old/a.json"), "--format",
                           "markdown")
        changed, rest = text.split("## Changed beyond noise")[1].split("## No change seen")
        return changed, rest.split("\n## ")[0]

    def test_a_shift_is_seen_and_noise_is_not(self):
        new = made_up()
        new["series"][0]["points"][0] = point(8, [16.0, 16.1, 16.2])
        changed, same = self.changed(new, made_up())
        self.assertRegex(changed, r"\| pingpong \| latency \| warm \| 8 \| 1\.99x .*\| worse \|")
        self.assertNotIn("KiB", changed)
        self.assertEqual(same.count("no difference seen"), 2)

    def test_the_interval_is_welch_s(self):
        new = made_up()
        new["series"][0]["points"] = [point(8, [1.0, 2.718281828459045])]  # mean logarithm 0.5, its variance 1/4
        old = copy.deepcopy(new)
        _, same = self.changed(new, old)  # two degrees of freedom: exp(14.09 * sqrt(1/2)) = 21,229
        self.assertIn("1.00x \\[4.71e-05, 21229\\]", same)

    def test_one_round_decides_nothing(self):
        new, old = made_up(), made_up(factor=3)
        for report in (new, old):
            for each in report["series"]:
                each["points"] = [point(one["x"], one["rounds"][:1]) for one in each["points"]]
        changed, same = self.changed(new, old)
        self.assertIn("None.", changed)
        self.assertEqual(same.count("not decided: one round"), 3)


class Refused(ReportTest):
    def refused_report(self, *arguments):
        before = sorted(os.listdir(self.folder))
        output = os.path.join(self.folder, "report.html")
        status, said, error = self.run_job("report", *arguments, *([] if "-o" in arguments else ["-o", output]))
        self.assertEqual((status, said, len(error.splitlines())), (2, "", 1), error)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        return error

    def test_input_that_is_no_report_is_refused(self):
        path = os.path.join(self.folder, "wrong.json")
        for text, why in (("", "is no report"), ("{", "is no report"), ("[1]", "is no report"), ("{}", "is no report"),
                          ('{"benchmark": "x", "version": 1}', "has version 1, not 2"),
                          ('{"benchmark": "x", "version": 2}', "is no complete report"),
                          ('{"benchmark": "x", "version": 2, "machine": [], "parameters": {}}', "is no complete report")):
            with self.subTest(text=text):
                with open(path, "w") as file:
                    file.write(text)
                self.assertIn(f"wrong.json: {why}", self.refused_report(path))

    def test_a_missing_or_empty_folder_is_refused(self):
        self.assertIn("No such file", self.refused_report(os.path.join(self.folder, "nothing")))
        self.assertIn("has no .json file", self.refused_report(self.folder))

    def test_an_output_that_cannot_be_written_is_refused(self):
        path = self.store(made_up())
        self.assertIn("there is no folder", self.refused_report(path, "-o", os.path.join(self.folder, "no", "page")))
        self.assertIn("No space left", self.refused_report(path, "-o", "/dev/full"))


@unittest.skipUnless(shutil.which("node") and shutil.which("chromium") and os.path.isdir(PLAYWRIGHT) and
                     os.path.exists(SCRIPT), "needs Node, chromium, and a build with the charts of npm")
class Browser(ReportTest):
    def seen(self, *arguments):
        folder = os.path.join(CHARTS, "seen-plain" if "--plain" in arguments else "seen")
        os.makedirs(folder, exist_ok=True)
        self.store(made_up("series", HOSTILE), "in/a.json")
        self.store(made_up(HOSTILE), "in/b.json")
        self.report(os.path.join(self.folder, "in"), *arguments)
        result = subprocess.run(["node", DRIVE, os.path.abspath(PLAYWRIGHT), shutil.which("chromium"),
                                 os.path.join(self.folder, "report.html"), folder], text=True, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        seen = json.loads(result.stdout)
        self.assertEqual(seen["errors"], [])
        self.assertEqual(len(seen["requests"]), 1)
        self.assertFalse(seen["alerted"])
        self.assertEqual((seen["charts"], seen["tables"]), (5, 6))  # and the overview's
        return seen

    def test_the_charts_are_drawn_and_usable_by_keyboard_in_dark_and_on_paper(self):
        seen = self.seen()
        self.assertEqual((seen["drawn"], seen["plain"]), (5, 0))
        for label in seen["labels"]:
            self.assertIn("The table below has the values", label)
        self.assertEqual(seen["focused"][0], "skip")
        self.assertEqual(seen["focused"].count("chart"), 5)
        self.assertGreater(seen["focused"].count("wide"), 5)
        self.assertEqual(seen["headings"][0], 1)
        for before, after in zip(seen["headings"], seen["headings"][1:]):
            self.assertLessEqual(after, before + 1)
        self.assertEqual(seen["light"], seen["printed"])
        self.assertNotEqual(seen["light"], seen["dark"])
        self.assertFalse(seen["nav_is_printed"])
        self.assertGreater(seen["pdf_bytes"], 10000)

    def test_plain_charts_need_no_script(self):
        seen = self.seen("--plain")
        self.assertEqual((seen["drawn"], seen["plain"]), (0, 5))


if __name__ == "__main__":
    unittest.main()
