"""`tonari bench overlap`, in quick form."""

import unittest

from harness.bench import BenchTest, has_rival

MODES = ["buffered/blocking", "blocking/started", "posted/started", "started/blocking", "started/started",
         "started-posted/started"]
TIMES = ("send", "compute", "wait")


class Overlap(BenchTest):
    def check(self, report, output, case, points, system="tonari"):
        """The case was measured at the points, and its products were right."""
        self.check_measured(report, case, points, system)
        residuals = self.points(report, system, case, "residual")
        self.assertEqual(list(residuals), points)
        self.assertTrue(all(0 <= point["max"] < 30 for point in residuals.values()))
        self.assertRegex(output, r"(?m)^residual .* LAPACK's bound is 30: passed$")

    def check_measured(self, report, case, points, system="tonari"):
        for metric in ("rate", *TIMES):
            self.assertEqual(list(self.points(report, system, case, metric)), points)

    def test_every_mode_is_measured_with_and_without_service_thread(self):
        report, output, _ = self.bench("overlap", "--sizes", "40,64")
        for system in ("tonari", "tonari-no-service"):
            self.assertEqual(self.cases(report, system, "rate"), MODES)
            for mode in MODES:
                self.check(report, output, mode, [40, 64], system)
        commands = [command for command in report["parameters"]["commands"] if "TONARI_SERVICE_THREAD=off" in command]
        self.assertEqual(len(commands), 1)

    def test_computation_can_be_removed_and_multiplied(self):
        report, output, _ = self.bench("overlap", "--sizes", "200", "--computation", "none,once,tenfold")
        self.assertEqual(self.cases(report, "tonari", "rate"),
                         [f"{mode}{times}" for mode in MODES for times in ("", " tenfold")])
        for mode in MODES:
            none, once, tenfold = (self.points(report, "tonari", mode + times, "compute")[200]["min"]
                                   for times in (" none", "", " tenfold"))
            self.assertLess(none, once)
            self.assertLess(once, tenfold)

    def test_products_are_right_when_blocks_do_not_divide_the_size(self):
        for ranks in (1, 2, 3):
            for sizes in ("1,2,65", "100"):
                with self.subTest(ranks=ranks, sizes=sizes):
                    report, output, _ = self.bench("overlap", "-n", ranks, "--sizes", sizes, "--blocks", 7)
                    for mode in MODES:
                        self.check(report, output, mode, [int(size) for size in sizes.split(",")])

    def test_times_are_printed_at_every_point_and_the_service_thread_has_its_price(self):
        report, output, _ = self.bench("overlap", "--sizes", "40,64", "--modes", "posted/started,started/started")
        for metric in TIMES:
            self.assertRegex(output, rf"(?m)^{metric}, ms, mean .*\n.*\n *n .*\n *40 .*\n *64 .*\n")
        self.assertIn("with the service thread / without", output)
        for mode in ("posted/started", "started/started"):
            for n in (40, 64):
                self.assertRegex(output, rf"(?m)^{mode} +n {n}( +[\d.<]+x){{3}}$")
            self.assertRegex(output, rf"(?m)^{mode} none +n 40 +- +- +[\d.<]+x$")
        without, with_it = (self.points(report, system, "posted/started", "rate")[64]["median"]
                            for system in ("tonari-no-service", "tonari"))
        self.assertRegex(output, rf"(?m)^posted/started +n 64 +{without / with_it:.2f}x")

    def test_the_plain_kernel_computes_the_same_product_in_more_time(self):
        computed = {}
        for kernel in ("blas", "plain"):
            report, output, _ = self.bench("overlap", "--sizes", "500", "--kernel", kernel, "--modes",
                                           "started/started")
            self.assertEqual(report["parameters"]["kernel"], kernel)
            self.check(report, output, "started/started", [500])
            computed[kernel] = self.points(report, "tonari", "started/started", "compute")[500]["min"]
        self.assertLess(computed["blas"], computed["plain"])

    def test_overlap_is_measured_over_numbers_of_blocks(self):
        report, output, _ = self.bench("overlap", "--sizes", "60", "--sweep", "blocks", "--blocks", "8,1,60")
        self.check(report, output, "started/started", [1, 8, 60])

    def test_overlap_is_measured_over_numbers_of_ranks(self):
        report, output, _ = self.bench("overlap", "-n", 3, "--sizes", "60", "--sweep", "ranks", "--modes",
                                       "started/started")
        self.check(report, output, "started/started", [1, 2, 3])

    def test_times_are_samples_of_each_rank(self):
        report, _, _ = self.bench("overlap", "--sizes", "60", "--modes", "posted/started")
        products = self.points(report, "tonari", "posted/started", "rate")[60]["n"]
        for metric in TIMES:
            self.assertEqual(self.points(report, "tonari", "posted/started", metric)[60]["n"], 2 * products)

    def test_the_option_full_adds_a_slowed_rank_and_traffic(self):
        report, output, _ = self.bench("overlap", "--sizes", "60", "--full", "--modes", "started/started")
        for case in ("", " slowed 3x", " traffic"):
            self.check(report, output, "started/started" + case, [60])
        self.check_measured(report, "started/started tenfold", [60])
        self.assertGreater(report["parameters"]["workers"]["tonari traffic"]["traffic, GB/s"], 0)
        self.assertIn("tonari run -n 4 ", "\n".join(report["parameters"]["commands"]))

    def test_wrong_options_are_refused(self):
        self.assertIn("started-posted/started", self.refused("overlap", "--modes", "sending"))
        self.assertIn("choose among once,none,tenfold", self.refused("overlap", "--computation", "twice"))
        self.assertIn("--blocks: it takes numbers from 1 to 1000", self.refused("overlap", "--blocks", "0"))
        self.assertIn("--slowed: must be a number of times from 2 to", self.refused("overlap", "--slowed", "1"))
        self.assertIn("--kernel: must be plain or blas", self.refused("overlap", "--kernel", "fast"))
        self.assertIn("--sweep: must be n or blocks or ranks", self.refused("overlap", "--sweep", "columns"))

    def test_rivals_compute_the_same_results(self):
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, "overlap"):
                continue
            with self.subTest(mpi=mpi):
                report, output, _ = self.bench("overlap", "--sizes", "60", "--rival", f"{mpi}-default")
                system = next(s["system"] for s in report["series"] if s["system"].startswith(mpi))
                for mode in MODES:
                    self.check(report, output, mode, [60], system)
                residuals = {s["points"][0]["max"] for s in report["series"] if s["metric"] == "residual"}
                self.assertEqual(len(residuals), 1, "the same sums in the same order")


if __name__ == "__main__":
    unittest.main()
