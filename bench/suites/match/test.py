"""`tonari bench match`, in quick form."""

import unittest

from harness.bench import BenchTest, has_rival

CASES = ["unexpected", "unexpected-cold", "any-source", "posted", "drain-reverse", "drain-random"]
FEW = ("--depths", "200,0,7")


class Match(BenchTest):
    def test_every_case_of_matching_is_measured_at_every_depth(self):
        report, output, _ = self.bench("match", *FEW)
        for system in ("tonari", "tonari-scan"):
            self.assertEqual(self.cases(report, system, "latency"), CASES)
            for case in CASES:
                points = self.points(report, system, case, "latency")
                self.assertEqual(list(points), [7, 200] if case.startswith("drain") else [0, 7, 200])
                self.assertTrue(all(point["min"] > 0 for point in points.values()))
        for case in CASES:
            self.assert_table(output, case, "latency, ns, median")

    def test_a_line_is_fitted_in_each_round(self):
        report, output, _ = self.bench("match", *FEW, "--rounds", "2", "--cases", "unexpected,drain-random")
        for system, case in (("tonari", "unexpected"), ("tonari-scan", "drain-random"), ("lhs", "unexpected")):
            for metric in ("slope", "intercept"):
                self.assertEqual(self.points(report, system, case, metric)[200]["n"], 2)
        self.assertRegex(output, "fit +system +ns per message +ns at depth 0")

    def test_searches_are_measured_with_long_messages_too(self):
        report, _, _ = self.bench("match", *FEW, "--cases", "unexpected,unexpected-cold,posted", "--payloads", "40")
        for system in ("lhs", "no-lhs"):
            self.assertEqual(self.cases(report, system, "latency"),
                             ["unexpected payload 40", "unexpected-cold payload 40",
                              "unexpected payload 4096", "unexpected-cold payload 4096"])

    def test_layouts_of_heads_are_compared_by_searches_that_copy(self):
        report, _, _ = self.bench("match", "--depths", "0,300", "--cases", "copied,copied-cold", "--payloads", "40")
        for system in ("lhs", "lhs-128", "lhs-cut", "no-lhs"):
            self.assertEqual(self.cases(report, system, "latency"),
                             [f"{case} payload {payload}" for payload in (40, 100, 4096)
                              for case in ("copied", "copied-cold")])
            self.assertEqual(list(self.points(report, system, "copied payload 100", "latency")), [0, 300])
        self.assertEqual({series["system"] for series in report["series"]}, {"lhs", "lhs-128", "lhs-cut", "no-lhs"})

    def test_cells_are_fast_until_they_are_full(self):
        report, _, _ = self.bench("match", "--depths", "0,100,255,20000", "--cases", "unexpected")
        latency = {depth: point["median"] for depth, point in
                   self.points(report, "alpu", "unexpected", "latency").items()}
        self.assertGreater(latency[20000], 5 * latency[255])
        self.assertEqual(list(self.points(report, "lhs-128", "unexpected", "latency")), [0, 100, 255, 20000])

    def test_payloads_of_all_kinds_arrive(self):
        payloads = [1, 48, 49, 4096, 8192]
        report, _, _ = self.bench("match", "--depths", "300", "--payloads", ",".join(map(str, payloads)))
        self.assertEqual(self.cases(report, "tonari", "latency"),
                         [f"{case} payload {payload}" for payload in payloads for case in CASES])

    def test_more_messages_than_the_default_limit_can_be_queued(self):
        self.bench("match", "--depths", "20000", "--payloads", "4096", "--cases", "unexpected,drain-reverse")

    def test_messages_that_wait_at_their_sender_are_refused(self):
        status, output, error = self.run_job("bench", "match", "--quick", "--payloads", "4096",
                                             env=self.environment(TONARI_DIRECT_BYTES="4096"))
        self.assertEqual((status, output), (2, ""))
        self.assertRegex(error, "^tonari bench match: --payloads: with TONARI_DIRECT_BYTES=4096 a message of 4096 "
                                "bytes waits at its sender")

    def test_numbers_of_ranks_other_than_two_are_refused(self):
        for ranks in ("1", "3"):
            self.assertIn("-n 2", self.refused("match", "-n", ranks))

    def test_rivals_measure_the_same_cases_as_tonari(self):
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, "match"):
                continue
            with self.subTest(mpi=mpi):
                report, output, _ = self.bench("match", *FEW, "--payloads", "0,4096", "--rival", f"{mpi}-default")
                system = next(s["system"] for s in report["series"] if s["system"].startswith(mpi))
                self.assertEqual(self.cases(report, system, "latency"),
                                 CASES + [f"{case} payload 4096" for case in CASES])
                self.assertIn("vs best", output)


if __name__ == "__main__":
    unittest.main()
