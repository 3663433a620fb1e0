"""Runs `tonari bench` for tests, and knows the shape of its results."""

import json
import os
import shutil
import tempfile

import jsonschema

from harness.jobs import BIN, JobTest, TONARI

SCHEMA = os.path.join(os.path.dirname(__file__), "..", "..", "..", "bench", "results.schema.json")


def has_rival(mpi, question):
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    of_pypi = os.path.join(cache, "tonari", mpi, "bin", "mpiexec")
    launcher = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.mpich", "tonari-mpi": TONARI}.get(mpi, of_pypi)
    worker = os.path.join(BIN, "..", "libexec", "tonari", "rivals", mpi, question)
    return shutil.which(launcher) is not None and os.access(worker, os.X_OK)


class BenchTest(JobTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def bench(self, *arguments, status=0):
        """Runs a benchmark in quick form; returns its report, standard output and standard error."""
        path = os.path.join(self.folder, "report.json")
        answer, output, error = self.run_job("bench", *arguments, "--quick", "--json", path)
        self.assertEqual(answer, status, error)
        self.assertEqual(os.listdir(self.folder), ["report.json"])
        with open(path) as file:
            report = json.load(file)
        self.check_shape(report)
        return report, output, error

    def refused(self, *arguments):
        """Returns the error of `tonari bench` for arguments that it refuses before measuring."""
        status, output, error = self.run_job("bench", *arguments)
        self.assertEqual((status, output), (2, ""))
        self.assertEqual(len(error.splitlines()), 1, error)
        self.assertEqual(os.listdir(self.folder), [])
        return error

    def check_shape(self, report):
        with open(SCHEMA) as file:
            jsonschema.validate(report, json.load(file))
        for series in report["series"] + report["again"]:
            for point in series["points"]:
                self.check_point(point)

    def check_point(self, point):
        order = [point[name] for name in ("min", "median", "p99", "max")]
        self.assertEqual(order, sorted(order))
        rounding = abs(point["mean"]) * 1e-8  # of the last digits written; a fitted t0 may be below zero
        self.assertLessEqual(point["min"], point["mean"] + rounding)
        self.assertGreaterEqual(point["max"], point["mean"] - rounding)
        self.assertEqual(len(point["samples"]), min(point["n"], 1000))
        self.assertGreaterEqual(min(point["samples"]), point["min"])
        if "interval" in point:
            self.assertTrue(min(point["rounds"]) <= point["interval"][0] <= point["interval"][1] <= max(point["rounds"]))

    def assert_table(self, output, case, heading):
        """Checks that the output has a table with this heading and a column of this case."""
        tables = [table for table in output.split("\n\n") if table.startswith(heading)]
        self.assertNotEqual(tables, [], output)
        begin = output.index("\n" + heading)
        end = output.find("median", begin + len(heading) + 1)
        self.assertIn(case, output[begin:end if end > 0 else None])

    def points(self, report, system, case, metric):
        """The points of one series by x."""
        found = [s for s in report["series"] if (s["system"], s["case"], s["metric"]) == (system, case, metric)]
        self.assertEqual(len(found), 1, f"{system}, {case}, {metric}")
        return {point["x"]: point for point in found[0]["points"]}

    def cases(self, report, system, metric):
        return [s["case"] for s in report["series"] if (s["system"], s["metric"]) == (system, metric)]
