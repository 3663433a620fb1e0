"""Programs written for MPI on two hosts: the tests of fronts/mpi, and deaths."""

import os
import pathlib
import signal

from bed import launchers
from bed.case import LauncherTest
from bed.world import main
from harness.jobs import BIN, PROGRAMS, Lines

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "fronts" / "mpi" / "tests"
FOLDER = os.path.join(PROGRAMS, os.pardir, "mpi")


def numbers_of_ranks():
    """Returns each program with the largest number of ranks that it is meant for, if that is more than one."""
    found = {}
    for source in sorted(SOURCES.glob("*.cpp")):
        with open(source) as file:
            ranks = max(map(int, file.readline().removeprefix("// ranks:").split()))
        if ranks > 1:
            found[source.stem] = ranks
    return found


class Mpi(LauncherTest):
    def launcher(self, *options):
        return launchers.unbound(launchers.openmpi5(), "--map-by", "node:OVERSUBSCRIBE", *options)

    def test_all_programs_run_on_two_hosts(self):
        hosts = self.make_hosts(2)
        for name, ranks in numbers_of_ranks().items():
            with self.subTest(program=name, ranks=ranks):
                status, output, error = self.run_to_end(hosts, self.launcher(), "-n", str(ranks),
                                                        os.path.join(FOLDER, f"mpi_{name}"))
                self.assertEqual((status, error), (0, ""), output)

    def test_mpi_and_a_job_share_one_runtime(self):
        hosts = self.make_hosts(2)
        for order in ("inside", "outside", "mixed"):
            with self.subTest(order=order):
                self.assertEqual(self.run_to_end(hosts, self.launcher(), "-n", "4", os.path.join(FOLDER, "mpi_both"), order),
                                 (0, 4 * "done\n", ""))

    def test_a_program_with_two_copies_of_the_runtime_is_told_what_to_link(self):
        hosts = self.make_hosts(2)
        for first in ("mpi", "job"):
            with self.subTest(first=first):
                status, output, error = self.run_to_end(hosts, self.launcher(), "-n", "2",
                                                        os.path.join(FOLDER, "mpi_both_static"),
                                                        os.path.join(BIN, "..", "lib", "libmpi_abi.so.1"), first)
                self.assertNotEqual(status, 0)
                self.assertIn("link it with tonari::tonari_shared", output + error)

    def test_with_errors_return_the_ranks_of_both_hosts_go_on_after_a_death(self):
        hosts = self.make_hosts(2)
        for call in ("recv", "ssend", "allreduce", "waitany"):
            with self.subTest(call=call):
                job = self.start(hosts, self.launcher("--enable-recovery"), "-n", "3", os.path.join(FOLDER, "mpi_deaths"),
                                 "killed", call, "return")
                output = Lines(job.stdout)
                pids = [int(output.wait_for(rf"^{rank} is (\d+)").group(1)) for rank in range(3)]
                output.wait_for("is ready", 3)
                os.kill(pids[1], signal.SIGKILL)
                for rank in (0, 2):
                    output.wait_for(rf"^rank {rank} saw MPI_ERR_PROC_ABORTED: MPI_.*of MPI_COMM_WORLD, rank 1 \(host h1\) ")
                    output.wait_for(rf"^rank {rank} left")
                job.wait()


if __name__ == "__main__":
    main()
