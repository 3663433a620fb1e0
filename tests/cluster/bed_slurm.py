"""The bed's Slurm starts ranks on all hosts, and takes them back."""

import subprocess

from bed.case import ClusterTest, compiled
from bed.hosts import Hosts
from bed.slurm import Slurm
from bed.world import main
from harness.jobs import PATIENCE, eventually


class SlurmTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.hosts = Hosts(3)
        cls.addClassCleanup(cls.hosts.close)
        cls.slurm = Slurm(cls.hosts)
        cls.addClassCleanup(cls.slurm.close)

    def test_starts_ranks_on_all_hosts(self):
        done = self.slurm.run("srun", "-n", "6", "--mpi=pmix", "hostname")
        self.assertEqual(sorted(done.stdout.split()), ["h0", "h0", "h1", "h1", "h2", "h2"], done.stderr)

    def test_lets_ranks_meet(self):
        done = self.slurm.run("srun", "-n", "6", "--mpi=pmix", compiled("pmix_exchange"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_exchange(done.stdout, 6, 3)

    def test_takes_back_a_job_in_the_middle(self):
        program = compiled("pmix_exchange")
        before = list(map(self.hosts.processes, range(3)))
        job = self.slurm.start("srun", "-n", "6", "--mpi=pmix", program, "1000", stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        self.addCleanup(job.stdout.close)
        for _ in range(6):
            self.assertIn("4 elsewhere", job.stdout.readline())
        self.assertTrue(all(len(self.hosts.processes(host)) > len(before[host]) + 2 for host in range(3)))

        self.assertEqual(self.slurm.run("scancel", *self.slurm.jobs()).returncode, 0)

        self.assertNotEqual(job.wait(PATIENCE), 0)
        eventually(lambda: list(map(self.hosts.processes, range(3))) == before, "only the daemons are left")
        eventually(lambda: not self.slurm.jobs(), "the queue is empty")


if __name__ == "__main__":
    main()
