"""The base class of tests on a cluster."""

import os
import subprocess
import unittest

from bed import FOLDER, launchers
from bed.hosts import Hosts, tell
from bed.slurm import Slurm
from bed.world import SHARED, Missing, need
from harness.jobs import BIN, PATIENCE, eventually

HELLO = os.path.join(BIN, os.pardir, "examples", "hello")


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


class LauncherTest(ClusterTest):
    """A test whose jobs leave nothing behind on the hosts."""

    def start(self, hosts, launcher, *words, **options):
        options = {"env": {**os.environ, **launchers.environment(hosts)}, **options}
        before = {host: hosts.processes(host) for host in range(hosts.count)}
        job = hosts.start(0, *launcher, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.addCleanup(self.check_nothing_left, hosts, before)
        self.addCleanup(self.stop, job)
        return job

    def stop(self, job):
        if job.poll() is None:
            job.terminate()
            job.wait(PATIENCE)
        for pipe in (job.stdout, job.stderr):
            pipe.close()

    def run_to_end(self, *arguments, **options):
        """Returns the exit status, output and error output."""
        job = self.start(*arguments, **options)
        output, error = job.communicate(timeout=PATIENCE)
        # Now and then Open MPI loses a race against its own child, and says so.
        error = "".join(line for line in error.splitlines(True) if "sh: Warning: setpgid" not in line)
        return job.returncode, output, error

    def check_nothing_left(self, hosts, before):
        for host in range(hosts.count):
            eventually(lambda: set(hosts.processes(host)) <= set(before[host]), f"{hosts.name(host)} is as before")
            self.assertNotIn("tonari", hosts.run(host, "cat", "/proc/net/unix").stdout)
            for folder in ("/tmp", "/dev/shm"):
                names = os.listdir(hosts.file(host, folder))
                self.assertFalse([name for name in names if "tonari" in name])


class OnSlurm:
    """Beside a test case: hosts with a private Slurm, for all of its tests."""

    HOSTS = 2

    @classmethod
    def setUpClass(cls):
        cls.hosts = Hosts(cls.HOSTS)
        cls.addClassCleanup(cls.hosts.close)
        cls.slurm = Slurm(cls.hosts)
        cls.addClassCleanup(cls.slurm.close)


def compiled(name):
    """A program of programs/, compiled against PMIx into the folder that the hosts share."""
    need("cc", "pkg-config")
    found = subprocess.run(["pkg-config", "--cflags", "--libs", "pmix"], capture_output=True, text=True)
    if found.returncode != 0:
        raise Missing("no PMIx to compile against: scripts/setup cluster")
    path = os.path.join(SHARED, name)
    if not os.path.exists(path):
        source = str(FOLDER / "programs" / f"{name}.c")
        tell("cc", "-Wall", "-Wextra", "-Werror", "-o", path, source, *found.stdout.split())
    return path
