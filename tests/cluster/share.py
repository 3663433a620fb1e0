"""Shared arrays between hosts have one address in all processes, under every launcher. They report the pages that are
lost with a dead rank.

Also guarded data whose windows have keys.
"""

import os
import time

from bed import FOLDER, launchers
from bed.case import LauncherTest
from bed.deaths import DEATH_BOUND
from bed.world import main
from harness.jobs import BIN, PROGRAMS, TONARI

PROGRAM = os.path.join(PROGRAMS, "shared_array")
WORKER = os.path.join(BIN, "..", "libexec", "tonari", "bench-worker")
WITH_A_CARD = os.path.join(FOLDER, "with_a_card")


def openmpi4(*options):
    return launchers.unbound(launchers.openmpi4(), *options)


def openmpi5(*options):
    return launchers.unbound(launchers.openmpi5(), *options)


class Shared(LauncherTest):
    def check_pointers(self, hosts, launcher, ranks):
        with self.subTest(launcher=os.path.basename(launcher[0]), ranks=ranks):
            status, output, error = self.run_to_end(hosts, launcher, "-n", str(ranks), PROGRAM, "pointers")
            self.assertEqual((status, error), (0, ""))
            self.assertCountEqual(output.splitlines(), [f"rank {rank} found {100 * ranks}" for rank in range(ranks)])

    def test_pointers_into_shared_arrays_are_valid_on_two_hosts(self):
        hosts = self.make_hosts(2)
        self.check_pointers(hosts, openmpi4(), 4)
        self.check_pointers(hosts, openmpi4("--host", "h0:1,h1:2"), 3)

    def test_pointers_into_shared_arrays_are_valid_on_four_hosts(self):
        self.check_pointers(self.make_hosts(4), openmpi5("--host", "h0,h1,h2,h3"), 4)

    def test_a_rank_that_dies_ends_the_job(self):
        hosts = self.make_hosts(3)
        launcher = openmpi5("--host", "h0,h1,h2")
        since = time.monotonic()
        status, _, error = self.run_to_end(hosts, launcher, "-n", "3", PROGRAM, "death")
        self.assertLess(time.monotonic() - since, DEATH_BOUND + 10)  # the 10 s are for starting the job
        self.assertNotEqual(status, 0)
        self.assertRegex(error, r"rank 1\b.*host h1\b")

    def test_pages_lost_with_a_dead_rank_are_reported(self):
        hosts = self.make_hosts(3)
        launcher = openmpi5("--enable-recovery", "--host", "h0,h1,h2")
        # The exit status varies, and is not checked.
        _, output, error = self.run_to_end(hosts, launcher, "-n", "3", PROGRAM, "lost")
        self.assertIn("rank 0: barrier peer_gone", output)
        self.assertNotIn("found", output)
        self.assertIn("pages of a shared array are lost with rank 1, their home: touching them raises SIGBUS", error)


class Guarded(LauncherTest):
    def test_bench_measures_guarded_data_on_two_hosts(self):
        cases = "--cases=guarded-handover,guarded-read,invalidate,update"
        words = [WORKER, "coherence", cases, "--rounds=4", "--output=/dev/null"]
        done = self.run_to_end(self.make_hosts(2), openmpi4("--map-by", "node"), "-n", "2", *words)
        self.assertEqual(done, (0, "", ""))

    def test_guarded_data_are_put_by_rdma_where_the_network_supports_it(self):
        unit = os.path.join(os.path.dirname(PROGRAMS), "unit")
        tests = [unit, "--gtest_brief=1", "--gtest_filter=*/Guarded*.*/Network*"]
        settings = {"TONARI_TEST_NETWORK": "any", "TONARI_PUT_BYTES": "0"}
        done = self.make_hosts(1).run(0, WITH_A_CARD, *tests, env={**os.environ, **settings})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # A skipped test would mean that the data travelled in messages. Only the variants that get may be skipped.
        self.assertNotRegex(done.stdout, "SKIPPED.*PutsData.*OwnerPuts")

    def test_a_job_whose_windows_have_keys_ends_cleanly(self):
        hosts = self.make_hosts(1)
        words = ["coherence", "--cases=guarded-handover", "--bytes=4096", "--rounds=4", "--output=/dev/null"]
        for _ in range(8):  # the last message may come before or during the end of the job
            done = hosts.run(0, WITH_A_CARD, TONARI, "run", "-n", "2", "--apart", "network", "--", WORKER, *words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    main()
