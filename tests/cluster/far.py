"""Far memory whose servers are on other hosts: named on the command line, started by the launcher that is installed."""

import json
import os
import subprocess
import time

from bed.case import LauncherTest
from bed.deaths import SILENCE_BOUND
from bed.world import main
from harness.far import need_faults
from harness.jobs import PATIENCE, PROGRAMS, TONARI, Lines

TORTURE = os.path.join(PROGRAMS, "far_torture")


class FarMemory(LauncherTest):
    def setUp(self):
        need_faults()
        self.hosts = self.make_hosts(3)

    def far(self, *options):
        return [TONARI, "far", "--local", "16M", "--memory", "256M", "--stats=json", *options, "--", TORTURE]

    def test_far_memory_is_on_the_named_hosts(self):
        before = [sum(self.hosts.traffic(host)) for host in range(3)]
        status, output, error = self.run_to_end(self.hosts, self.far("--servers", "h1,h2"), "1", "2", "20", "64")
        self.assertEqual((status, output), (0, "ok\n"), error)
        statistics = json.loads(error.splitlines()[-1])
        self.assertEqual(statistics["servers"], 2)
        carried = [sum(self.hosts.traffic(host)) - before[host] for host in range(3)]
        self.assertGreater(min(carried), 16 << 20, "each has a part of 64 MiB, of which 16 are local")

    def test_the_program_ends_when_the_only_host_of_its_far_memory_dies(self):
        job = self.start(self.hosts, self.far("--servers", "h1"), "1", "2", "0", "64", "wait", stdin=subprocess.PIPE)
        self.addCleanup(job.stdin.close)
        Lines(job.stdout).wait_for("ready")
        since = time.monotonic()
        self.hosts.kill(1)
        Lines(job.stderr).wait_for("tonari far: .* (is|are) lost")
        self.assertEqual(job.wait(PATIENCE), 137)
        self.assertLess(time.monotonic() - since, SILENCE_BOUND)


if __name__ == "__main__":
    main()
