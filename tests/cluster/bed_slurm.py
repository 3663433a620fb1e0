"""The bed's Slurm starts ranks on all hosts, and takes them back."""

import pathlib
import subprocess

from bed.case import ClusterTest, OnSlurm, compiled
from bed.world import main
from harness.jobs import PATIENCE, eventually


def name_of(pid):
    """Returns the name of the program that a process runs; None if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


class SlurmTest(OnSlurm, ClusterTest):
    HOSTS = 3

    def test_slurm_starts_ranks_on_all_hosts(self):
        done = self.slurm.run("srun", "-n", "6", "--mpi=pmix", "hostname")
        self.assertEqual(sorted(done.stdout.split()), ["h0", "h0", "h1", "h1", "h2", "h2"], done.stderr)

    def test_ranks_started_by_slurm_meet(self):
        done = self.slurm.run("srun", "-n", "6", "--mpi=pmix", compiled("pmix_exchange"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_exchange(done.stdout, 6, 3)

    def of_jobs(self, host):
        """The names of a host's processes that are there for a job."""
        names = [name_of(pid) for pid in self.hosts.processes(host)]
        return [name for name in names if name in ("pmix_exchange", "slurmstepd")]

    def test_scancel_ends_all_processes_of_a_running_job(self):
        program = compiled("pmix_exchange")
        job = self.slurm.start("srun", "-n", "6", "--mpi=pmix", program, "1000", stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        self.addCleanup(job.stdout.close)
        for _ in range(6):
            self.assertIn("4 elsewhere", job.stdout.readline())
        self.assertEqual([self.of_jobs(host).count("pmix_exchange") for host in range(3)], [2, 2, 2])

        self.assertEqual(self.slurm.run("scancel", *self.slurm.jobs()).returncode, 0)

        self.assertNotEqual(job.wait(PATIENCE), 0)
        eventually(lambda: not any(self.of_jobs(host) for host in range(3)), "only the daemons are left")
        eventually(lambda: not self.slurm.jobs(), "the queue is empty")


if __name__ == "__main__":
    main()
