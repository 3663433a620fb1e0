"""`tonari bench pingpong`, in quick form."""

import os
import unittest

from harness.bench import BenchTest, has_rival

FEW = ("--sizes", "8,64,4K,256K")


class Cases(BenchTest):
    def test_all_cases_of_pingpong_are_measured_at_every_size(self):
        report, output, _ = self.bench("pingpong", *FEW)
        cases = ["warm", "warm posted", "warm unexpected", "cold", "cold posted", "cold unexpected"]
        self.assertEqual(self.cases(report, "tonari", "latency"), cases)
        for case in cases:
            points = self.points(report, "tonari", case, "latency")
            self.assertEqual(list(points), [8, 64, 4096, 262144])
            for point in points.values():
                self.assertGreater(point["min"], 0)
            self.assert_table(output, case, "latency, us, median")

    def test_a_bare_ring_is_measured_at_sizes_that_fit_a_slot(self):
        report, _, _ = self.bench("pingpong", "--sizes", "8,40,64", "--receivers", "blocking")
        self.assertEqual(list(self.points(report, "ring", "warm", "latency")), [8, 40])

    def test_a_line_is_fitted_in_each_round(self):
        report, output, _ = self.bench("pingpong", *FEW, "--rounds", "2", "--buffers", "warm",
                                       "--receivers", "blocking")
        for metric in ("t0", "t1", "half-performance length"):
            self.assertEqual(self.points(report, "tonari", "warm", metric)[262144]["n"], 2)
        self.assertIn("fit t0 + n * t1", output)
        self.assertEqual(report["parameters"]["rounds"], 2)

    def test_splits_are_cases_of_their_own(self):
        report, _, _ = self.bench("pingpong", "--sizes", "8,64", "--buffers", "warm", "--receivers", "posted",
                                  "--split", "0,16")
        self.assertEqual(self.cases(report, "tonari", "latency"),
                         ["warm posted", "warm posted split 0", "warm posted split 16"])

    def test_splits_longer_than_messages_work(self):
        self.bench("pingpong", "--sizes", "1,2,47,48,49,100", "--buffers", "warm", "--split", "48,1")


class Networks(BenchTest):
    SHORT = ("--sizes", "8", "--buffers", "warm", "--receivers", "blocking", "--apart", "network")

    def test_networks_are_systems_of_one_table(self):
        report, output, _ = self.bench("pingpong", *self.SHORT, "--network", "tcp,any")
        self.assertEqual({series["system"] for series in report["series"]},
                         {"tonari over tcp", "tonari over any", "ring"})
        self.assertRegex(output, r"(?m)^bytes +tonari over tcp +ring +tonari over any +any vs tcp$")
        self.assertEqual(report["parameters"]["network"], "tcp,any")
        pairs = {(one["system"], one["with"]) for one in report["comparisons"]}
        self.assertIn(("tonari over any", "tonari over tcp"), pairs)
        commands = " ".join(report["parameters"]["commands"])
        self.assertIn("--network tcp ", commands)
        self.assertIn("--network any ", commands)

    def test_rivals_are_compared_over_the_same_network(self):
        if not has_rival("openmpi", "pingpong"):
            self.skipTest("Open MPI is not installed")
        report, output, _ = self.bench("pingpong", *self.SHORT, "--network", "tcp,any", "--rival", "openmpi-default")
        self.assertEqual(len({series["system"] for series in report["series"]}), 5)
        self.assertRegex(output, r"(?m) tcp vs best +any vs best +any vs tcp$")

    def test_a_network_that_this_machine_lacks_is_left_out_with_the_reason(self):
        if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
            self.skipTest("this machine has RDMA devices")
        report, output, _ = self.bench("pingpong", *self.SHORT, "--network", "tcp,rc")
        self.assertEqual(self.cases(report, "tonari over tcp", "latency"), ["warm"])
        self.assertEqual([failed["system"] for failed in report["failed"]], ["tonari over rc"])
        self.assertIn("not measured: tonari over rc: this machine has no RDMA device", output)

    def test_rates_are_derived_from_the_latency(self):
        report, output, _ = self.bench("pingpong", "--sizes", "8,4K", "--buffers", "warm", "--receivers", "blocking")
        for size in (8, 4096):
            rate, latency = (self.points(report, "tonari", "warm", metric)[size]["median"]
                             for metric in ("rate", "latency"))
            self.assertAlmostEqual(rate, size / latency, delta=rate * 1e-6)
        self.assert_table(output, "warm", "rate, MB/s, median")

    def test_wrong_networks_are_refused(self):
        self.assertIn("--network: must be any or tcp or rc or ud",
                      self.refused("pingpong", "--apart", "network", "--network", "tcp,ib"))
        self.assertIn("one network at a time",
                      self.refused("stream", "--quick", "--apart", "network", "--network", "tcp,any"))
        self.assertIn("add --apart network", self.refused("pingpong", "--network", "tcp,any"))


class Pairs(BenchTest):
    def test_pairs_of_more_than_two_ranks_are_named_with_their_distance(self):
        report, _, _ = self.bench("pingpong", "-n", "3", "--bind", "none", "--sizes", "8", "--buffers", "warm",
                                  "--receivers", "posted")
        self.assertEqual(self.cases(report, "tonari", "latency"),
                         ["warm posted 0-1 same host", "warm posted 0-2 same host"])


class Rivals(BenchTest):
    def check(self, mpi, pattern):
        if not has_rival(mpi, "pingpong"):
            self.skipTest(f"{mpi} is not installed")
        report, output, _ = self.bench("pingpong", "--sizes", "8,1K", "--rival", mpi)
        systems = sorted({series["system"] for series in report["series"]})
        self.assertEqual(len(systems), 4, systems)
        self.assertRegex(systems[0], f"^{pattern}$")
        self.assertEqual(systems[1], systems[0] + " thread-multiple")
        self.assertEqual(systems[2:], ["ring", "tonari"])
        self.assertEqual(list(self.points(report, systems[0], "cold unexpected", "latency")), [8, 1024])
        self.assertRegex(output, "vs best")

    def test_open_mpi_is_measured_with_and_without_thread_multiple(self):
        self.check("openmpi", r"openmpi-\d+\.\d+\.\d+\w*")

    def test_mpich_is_measured_with_and_without_thread_multiple(self):
        self.check("mpich", r"mpich-\d+\.\d+(\.\d+)?\w*")

    def test_the_mpis_of_pypi_are_measured_with_and_without_thread_multiple(self):
        for mpi, version in (("openmpi5", r"openmpi-5[\d.]+"), ("mpich5", r"mpich-5[\d.]+"), ("impi", r"impi-[\d.]+")):
            with self.subTest(mpi=mpi):
                self.check(mpi, version)

    def test_mpis_of_pypi_that_are_missing_are_named_with_the_remedy(self):
        for mpi in ("openmpi5", "mpich5", "impi"):
            error = self.run_job("bench", "pingpong", "--quick", "--rival", mpi,
                                 env=self.environment(XDG_CACHE_HOME=self.folder))
            self.assertEqual(error[:2], (2, ""))
            self.assertRegex(error[2], rf"--rival {mpi}: {self.folder}/tonari/{mpi}/bin/mpiexec is not installed; "
                                       rf"`scripts/pypi-mpis {mpi}` installs it from PyPI")

    def test_tonari_s_own_mpi_is_measured_beside_its_messages(self):
        if not has_rival("tonari-mpi", "pingpong"):
            self.skipTest("the MPI front is not built")
        report, _, _ = self.bench("pingpong", "--sizes", "8,1K", "--rival", "tonari-mpi")
        self.assertEqual(sorted({series["system"] for series in report["series"]}), ["ring", "tonari", "tonari-mpi"])
        self.assertEqual(self.cases(report, "tonari-mpi", "latency"), self.cases(report, "tonari", "latency"))
        self.assertTrue(any("tonari run -n 2" in command and "rivals/tonari-mpi/pingpong" in command
                            for command in report["parameters"]["commands"]))

    def test_tonari_s_own_mpi_is_compared_with_the_best_rival(self):
        if not has_rival("tonari-mpi", "pingpong") or not has_rival("mpich", "pingpong"):
            self.skipTest("the MPI front is not built, or mpich is not installed")
        _, output, _ = self.bench("pingpong", "--sizes", "8", "--buffers", "warm", "--receivers", "posted",
                                  "--rivals-only", "--rival", "mpich-default,tonari-mpi")
        self.assertRegex(output, r"bytes +mpich-\S+ +tonari-mpi +mpi vs best")

    def test_one_mode_of_a_rival_can_be_measured_without_tonari(self):
        if not has_rival("mpich", "pingpong"):
            self.skipTest("mpich is not installed")
        report, _, _ = self.bench("pingpong", "--sizes", "64", "--rivals-only", "--rival", "mpich-mt")
        self.assertTrue(all(series["system"].endswith("thread-multiple") for series in report["series"]))


if __name__ == "__main__":
    unittest.main()
