"""What tests on a cluster have in common."""

import os
import subprocess
import unittest

from bed import FOLDER
from bed.hosts import Hosts, tell
from bed.world import SHARED, Missing, need


class ClusterTest(unittest.TestCase):
    maxDiff = None

    def make_hosts(self, count):
        """Hosts that end with the test."""
        hosts = Hosts(count)
        self.addCleanup(hosts.close)
        return hosts

    def check_exchange(self, output, ranks, hosts):
        """pmix_exchange said on as many ranks that they met, spread evenly over the hosts."""
        here = ranks // hosts
        met = f"{here} here, {ranks - here} elsewhere"
        lines = [f"rank {rank} of {ranks} on h{rank // here}: {met}" for rank in range(ranks)]
        self.assertCountEqual(output.splitlines(), lines)


def compiled(name):
    """A program of programs/, compiled against PMIx into what the hosts share."""
    need("cc", "pkg-config")
    found = subprocess.run(["pkg-config", "--cflags", "--libs", "pmix"], capture_output=True, text=True)
    if found.returncode != 0:
        raise Missing("no PMIx to compile against: scripts/setup cluster")
    path = os.path.join(SHARED, name)
    if not os.path.exists(path):
        source = str(FOLDER / "programs" / f"{name}.c")
        tell("cc", "-Wall", "-Wextra", "-Werror", "-o", path, source, *found.stdout.split())
    return path
