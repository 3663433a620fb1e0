"""`tonari bench series`, in quick form."""

import os
import statistics
import unittest
import unittest.mock

from harness.bench import BenchTest, has_rival

# Machines as hwloc may find them: processors 0 and 1 with a cache together, and with a socket each.
SHARED = {"HWLOC_SYNTHETIC": "pack:1 l3:1 core:2 pu:1", "HWLOC_THISSYSTEM": "1"}
APART = {"HWLOC_SYNTHETIC": "pack:2 l3:1 core:1 pu:1", "HWLOC_THISSYSTEM": "1"}


class SeriesTest(BenchTest):
    def check(self, report, system, cases, sizes=(1 << 20,), exchanges=100):
        self.assertEqual(self.cases(report, system, "latency"), cases)
        for case in cases:
            points = self.points(report, system, case, "latency")
            self.assertEqual(list(points), list(sizes))
            for point in points.values():
                self.check_statistics(point, exchanges)

    def check_statistics(self, point, exchanges):
        samples = point["samples"]
        self.assertEqual((point["n"], len(samples)), (exchanges, exchanges))
        self.assertTrue(0 < point["min"] <= point["mean"] <= point["max"], point)
        for name, value in (("min", min(samples)), ("max", max(samples)), ("median", statistics.median(samples)),
                            ("mean", statistics.mean(samples)), ("stddev", statistics.stdev(samples))):
            self.assertAlmostEqual(point[name], value, delta=1e-6 * value)
        self.assertGreater(point["stddev"], 0)


class Series(SeriesTest):
    def measure(self, machine, *arguments):
        if not {0, 1} <= os.sched_getaffinity(0):
            self.skipTest("processors 0 and 1 may not be used")
        with unittest.mock.patch.dict("os.environ", machine):
            return self.bench("series", *arguments)

    def test_a_series_between_cores_that_share_a_cache_is_measured(self):
        report, output, _ = self.measure(SHARED)
        self.check(report, "tonari", ["warm near", "cold near"])
        self.assertEqual(report["parameters"]["workers"]["tonari near"]["processors"], "0 1")
        self.assertRegex(output, r"cold near, 1 MiB: latency, us\nsystem +min +median +mean +max +deviation +samples +MB/s\n"
                                 r"tonari( +[\d.]+){5} +100 +[\d.]+\n")
        self.assertIn("far: not measured, all cores that may be used share a cache", output)

    def test_a_series_between_cores_without_a_common_cache_has_one_sample_per_round_trip(self):
        report, output, _ = self.measure(APART, "--exchanges", "7", "--sizes", "64,64K")
        self.check(report, "tonari", ["warm far", "cold far"], (64, 65536), 7)
        self.assertEqual(report["parameters"]["workers"]["tonari far"]["processors"], "0 1")
        self.assertIn("near: not measured, no two cores that may be used share a cache", output)

    def test_a_series_can_be_measured_with_unbound_ranks(self):
        report, output, _ = self.bench("series", "--bind", "none", "--buffers", "warm", "--exchanges", "3")
        self.check(report, "tonari", ["warm"], exchanges=3)
        self.assertNotIn("not measured", output)

    def test_a_series_has_the_samples_of_all_rounds(self):
        report, _, _ = self.measure(SHARED, "--rounds", "2", "--buffers", "warm", "--exchanges", "10")
        self.check(report, "tonari", ["warm near"], exchanges=20)

    def test_a_series_begins_warm(self):
        """Without exchanges before it the first ones take about twice the time of the last ones."""
        report, _, _ = self.measure(SHARED, "--buffers", "warm", "--exchanges", "3")
        self.assertEqual(report["parameters"]["workers"]["tonari near"]["warm_up_exchanges"], 30)

    def test_rates_are_derived_in_every_round(self):
        report, _, _ = self.measure(SHARED, "--rounds", "2", "--buffers", "warm", "--exchanges", "9")
        rate = self.points(report, "tonari", "warm near", "rate")[1 << 20]
        latency = self.points(report, "tonari", "warm near", "latency")[1 << 20]["samples"]
        self.assertEqual(rate["n"], 2)
        for value, times in zip(rate["samples"], (latency[:9], latency[9:])):
            self.assertAlmostEqual(value, (1 << 20) / statistics.median(times), delta=value * 1e-6)

    def test_a_series_is_measured_over_the_network(self):
        report, _, _ = self.measure(SHARED, "--apart", "network", "--network", "tcp")
        self.check(report, "tonari", ["warm near", "cold near"])


class Rivals(SeriesTest):
    def test_rivals_measure_the_same_cases_as_tonari(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there are no two cores")
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, "pingpong"):
                continue
            for apart in ([], ["--apart", "network", "--network", "tcp"]):
                with self.subTest(mpi=mpi, apart=apart):
                    report, _, _ = self.bench("series", "--rival", mpi, *apart)
                    systems = {series["system"] for series in report["series"]}
                    self.assertEqual(len(systems), 3, systems)
                    cases = self.cases(report, "tonari", "latency")
                    for system in systems:
                        self.check(report, system, cases)
                        processors = {workers["processors"] for name, workers in report["parameters"]["workers"].items()
                                      if name.rsplit(" ", 1)[0] == system}
                        self.assertNotIn("any", " ".join(processors))


class Refusal(SeriesTest):
    def test_wrong_options_are_refused_with_an_explanation(self):
        for ranks in ("1", "3"):
            self.assertIn("series needs two ranks, no more: -n 2", self.refused("series", "-n", ranks))
        for number in ("0", "1001", "x"):
            self.assertIn("--exchanges: must be a number of round trips from 1 to 1000",
                          self.refused("series", "--exchanges", number))
        self.assertIn("choose among near,far", self.refused("series", "--cores", "close"))
        self.assertIn("leave one of them out", self.refused("series", "--bind", "none", "--cores", "near"))
        self.assertIn("ucx_perftest reports no single times", self.refused("series", "--rival", "ucx"))

    def test_cores_that_the_machine_lacks_are_refused(self):
        with unittest.mock.patch.dict("os.environ", SHARED):
            self.assertIn("--cores far: there are no such two cores here; --bind none asks without",
                          self.refused("series", "--cores", "far"))


if __name__ == "__main__":
    unittest.main()
