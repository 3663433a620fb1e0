"""Windows between hosts: every primitive, by ranks that share a host and ranks that do not, in one window."""

import os
import signal
import time

from bed import launchers
from bed.case import LauncherTest
from bed.world import main
from harness.jobs import PATIENCE, PROGRAMS, Lines

WINDOWS = os.path.join(PROGRAMS, "windows")

# Of a process on another host, as for messages.
DEATH_BOUND = 4.0


def openmpi4(*options):
    return [*launchers.openmpi4(), "--bind-to", "none", *options]


def openmpi5(*options):
    return [*launchers.openmpi5(), "--bind-to", "none", *options]


class WindowsTest(LauncherTest):
    def check_done(self, hosts, launcher, ranks, *words):
        """All ranks do it, and nobody complains."""
        with self.subTest(launcher=os.path.basename(launcher[0]), words=words):
            since = time.monotonic()
            status, output, error = self.run_to_end(hosts, launcher, "-n", str(ranks), WINDOWS, *words)
            self.assertEqual((status, error), (0, ""))
            self.assertCountEqual(output.splitlines(), [f"rank {rank} did it" for rank in range(ranks)])
            print(f"{' '.join(words)} {time.monotonic() - since:.1f} s", end=" ... ", flush=True)


class Primitives(WindowsTest):
    def test_on_two_hosts(self):
        hosts = self.make_hosts(2)
        for words in (("copies", "1"), ("locks",), ("words",), ("barriers",), ("alone",), ("mistakes",), ("freed",)):
            self.check_done(hosts, openmpi4(), 4, *words)

    def test_on_four_hosts(self):
        hosts = self.make_hosts(4)
        for words in (("copies", "2"), ("locks",), ("barriers",)):
            self.check_done(hosts, openmpi5("--host", "h0,h1,h2,h3"), 4, *words)

    def test_on_three_hosts_of_which_one_has_more_ranks(self):
        hosts = self.make_hosts(3)
        for words in (("copies", "3"), ("locks",), ("barriers",), ("freed",)):
            self.check_done(hosts, openmpi4("--host", "h0:3,h1:1,h2:1"), 5, *words)

    # Neighbours in rank are on different hosts then.
    def test_with_ranks_dealt_out_in_turn(self):
        hosts = self.make_hosts(2)
        for words in (("copies", "4"), ("locks",), ("barriers",)):
            self.check_done(hosts, openmpi4("--map-by", "node"), 4, *words)

    # However many ranks a host has, of both kinds of memory.
    def test_multicasts_cross_the_link_once(self):
        hosts = self.make_hosts(2)
        times = 16
        before = hosts.traffic(1).received + hosts.traffic(0).received
        self.check_done(hosts, openmpi4("--host", "h0:2,h1:3"), 5, "multicast", str(times))
        crossed = (hosts.traffic(1).received + hosts.traffic(0).received - before) / (2 * times) / 2**20
        self.assertTrue(1.0 <= crossed < 1.2, f"{crossed:.2f} times")

    def test_with_other_settings(self):
        hosts = self.make_hosts(2)
        for setting in ("TONARI_SERVICE_THREAD=off", "TONARI_DIRECT_COPIES=off"):
            self.check_done(hosts, openmpi4("-x", setting), 4, "copies", "5")


class Deaths(WindowsTest):
    # With a lock of a rank of another host, and of its own.
    def test_of_a_rank_that_has_a_lock(self):
        hosts = self.make_hosts(2)
        for victim in (3, 1):
            with self.subTest(victim=victim):
                job = self.start(hosts, openmpi5("--enable-recovery"), "-n", "4", WINDOWS, "dies", str(victim))
                output = Lines(job.stdout)
                pid = int(output.wait_for(rf"^{victim} is (\d+)").group(1))
                for rank in range(4):
                    output.wait_for(rf"^rank {rank} is ready")
                since = time.monotonic()
                os.kill(pid, signal.SIGKILL)
                for rank in set(range(4)) - {victim}:
                    output.wait_for(rf"^rank {rank} saw peer_gone of {victim}")
                self.assertLess(time.monotonic() - since, DEATH_BOUND)
                job.wait(PATIENCE)


if __name__ == "__main__":
    main()
