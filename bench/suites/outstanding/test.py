"""`tonari bench outstanding`, in quick form."""

import unittest

from harness.bench import BenchTest, has_rival

CASES = [f"{case} bytes {size}" for case in ("sends", "receives") for size in (8, 4096)]


class Outstanding(BenchTest):
    def check(self, report, system, numbers):
        self.assertEqual(self.cases(report, system, "time"), CASES)
        for case in CASES:
            points = self.points(report, system, case, "time")
            self.assertEqual(list(points), numbers)
            self.assertTrue(all(point["min"] > 0 for point in points.values()))

    def test_every_case_is_measured_with_every_number_of_messages(self):
        report, output, _ = self.bench("outstanding", "--outstanding", "300,1,20")
        self.check(report, "tonari", [1, 20, 300])
        for case in CASES:
            self.assert_table(output, case, "time, us, median")
        self.assertNotIn("left out", output)

    def test_hosts_are_measured_too(self):
        report, _, _ = self.bench("outstanding", "--outstanding", "7,100", "--apart", "network", "--network", "tcp")
        self.check(report, "tonari", [7, 100])

    def test_numbers_that_take_too_long_are_left_out_and_named(self):
        # A million messages after one: at 1 us each, and with a time that grows with the number, 11 days.
        report, output, _ = self.bench("outstanding", "--outstanding", "1,1000000", "--cases", "sends", "--sizes", "8")
        self.assertEqual(list(self.points(report, "tonari", "sends bytes 8", "time")), [1])
        self.assertRegex(output, r"tonari: sends bytes 8 left out 1000000: an exchange would take about \d+ s")

    def test_receives_that_need_too_much_memory_are_left_out_and_named(self):
        report, output, _ = self.bench("outstanding", "--outstanding", "1,2000", "--cases", "receives",
                                       "--sizes", "1M", "--limit", "3600")
        self.assertEqual(list(self.points(report, "tonari", "receives bytes 1048576", "time")), [1])
        self.assertIn("left out 2000: the receives would need 2.0 GiB", output)

    def test_wrong_options_are_refused(self):
        self.assertIn("-n 2", self.refused("outstanding", "-n", "3"))
        self.assertIn("at most 1M", self.refused("outstanding", "--sizes", "2M"))
        self.assertIn("choose among sends,receives", self.refused("outstanding", "--cases", "probes"))
        self.assertIn("numbers from 1 to 1000000", self.refused("outstanding", "--outstanding", "0"))

    def test_tonari_s_own_mpi_measures_the_same_cases(self):
        if not has_rival("tonari-mpi", "outstanding"):
            self.skipTest("the MPI front is not built")
        for where in ((), ("--apart", "network", "--network", "tcp")):
            report, _, _ = self.bench("outstanding", "--outstanding", "1,50", "--rival", "tonari-mpi", *where)
            self.check(report, "tonari-mpi", [1, 50])

    def test_rivals_measure_the_same_cases_as_tonari(self):
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, "outstanding"):
                continue
            with self.subTest(mpi=mpi):
                report, output, _ = self.bench("outstanding", "--outstanding", "1,50", "--rival", f"{mpi}-default")
                system = next(s["system"] for s in report["series"] if s["system"].startswith(mpi))
                self.check(report, system, [1, 50])
                self.assertIn("vs best", output)


if __name__ == "__main__":
    unittest.main()
