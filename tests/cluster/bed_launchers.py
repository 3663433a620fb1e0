"""The launchers of the MPIs start ranks on the bed's hosts, and take them back."""

import os
import signal
import subprocess

from bed import launchers
from bed.case import ClusterTest, compiled
from bed.world import main
from harness.jobs import PATIENCE, eventually


class Launchers(ClusterTest):
    def start(self, hosts, launcher, *words):
        variables = {**os.environ, **launchers.environment(hosts)}
        return hosts.start(0, *launcher, *words, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def check_pmix(self, launcher):
        program = compiled("pmix_exchange")
        hosts = self.make_hosts(3)
        with self.subTest("ranks meet"):
            job = self.start(hosts, launcher, "-n", "6", program)
            output, error = job.communicate(timeout=PATIENCE)
            self.assertEqual(job.returncode, 0, error)
            self.check_exchange(output, 6, 3)
        with self.subTest("ended in the middle"):
            with self.start(hosts, launcher, "-n", "6", program, "1000") as job:
                for _ in range(6):
                    self.assertIn("4 elsewhere", job.stdout.readline())
                job.send_signal(signal.SIGTERM)
                job.communicate(timeout=PATIENCE)
            self.check_empty(hosts)

    def check_empty(self, hosts):
        for host in range(hosts.count):
            eventually(lambda: not hosts.processes(host), f"{hosts.name(host)} is empty")

    def test_ranks_of_open_mpi_4_meet_and_end_with_the_launcher(self):
        self.check_pmix(launchers.openmpi4())

    def test_ranks_of_open_mpi_5_meet_and_end_with_the_launcher(self):
        self.check_pmix(launchers.openmpi5())

    def test_ranks_of_prterun_meet_and_end_with_the_launcher(self):
        self.check_pmix(launchers.prterun())

    def test_ranks_of_mpich_run_on_all_hosts_and_end_with_the_launcher(self):
        hosts = self.make_hosts(2)
        job = self.start(hosts, launchers.mpich(), "-n", "4", "sh", "-c", "echo $(hostname) $PMI_RANK of $PMI_SIZE")
        output, error = job.communicate(timeout=PATIENCE)
        self.assertEqual(sorted(output.splitlines()), ["h0 0 of 4", "h0 1 of 4", "h1 2 of 4", "h1 3 of 4"], error)
        self.check_empty(hosts)


if __name__ == "__main__":
    main()
