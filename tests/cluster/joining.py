"""Ranks join by launchers that have PMIx, on one and on several hosts. Launchers without PMIx are refused, with a
remedy."""

import os
import re
import signal
import subprocess

from bed import FOLDER, launchers
from bed.case import HELLO, LauncherTest, OnSlurm, compiled
from bed.hosts import tell
from bed.world import SHARED, Missing, main, need
from harness.jobs import PATIENCE, PROGRAMS, TONARI, Lines, eventually

JOINING = os.path.join(PROGRAMS, "joining")


class JoiningTest(LauncherTest):
    def check_joined(self, done, ranks, hosts):
        """Checks that `ranks` ranks found each other, share one arena per host, and received each rank's address."""
        status, output, error = done
        self.assertEqual(status, 0, error)
        here = ranks // hosts
        name = (lambda host: f"h{host}") if hosts > 1 else (lambda host: "")
        places = [(rank, rank // here) for rank in range(ranks)]
        joined = [f"rank {rank} of {ranks}: host {host} of {hosts}, {name(host)}" for rank, host in places]
        neighbours = [range(host * here, host * here + here) for _, host in places]
        seen = ["sees " + " ".join(map(str, of_host)) for of_host in neighbours]
        lines = [re.sub(r"; \d+\.\d ms$|, cores .*$", "", line) for line in output.splitlines()]
        self.assertCountEqual(lines, joined + seen + ["exchanged"] * ranks, error)
        self.assertEqual(error, "")


class ByOpenMpi(JoiningTest):
    def check(self, launcher):
        hosts = self.make_hosts(4)
        for count in (1, 2, 4):
            with self.subTest(hosts=count):
                chosen = ["--host", ",".join(f"h{host}:{4 // count}" for host in range(count))]
                words = ["join", "arena", "exchange", "2000", "leave"]
                self.check_joined(self.run_to_end(hosts, launcher, *chosen, "-n", "4", JOINING, *words), 4, count)

    def test_ranks_join_by_open_mpi_4(self):
        self.check([*launchers.openmpi4(), "--bind-to", "none"])

    def test_ranks_join_by_open_mpi_5(self):
        self.check([*launchers.openmpi5(), "--bind-to", "none"])

    def test_tonari_run_starts_ranks_by_open_mpi(self):
        hosts = self.make_hosts(2)
        run = [TONARI, "run", "-n", "4", "--hosts"]
        for asked in ("h0,h1", "2"):
            for launcher in (launchers.openmpi4(), launchers.openmpi5()):
                path = f"{os.path.dirname(launcher[0])}:{os.environ['PATH']}".lstrip(":")
                env = {**os.environ, **launchers.environment(hosts), "PATH": path}
                words = ["--env", "GIVEN=b, c", "sh", "-c", f'[ "$GIVEN" = "b, c" ] && exec {JOINING} join exchange 9']
                status, output, error = self.run_to_end(hosts, [*run, asked], *words, env=env)
                self.assertEqual((status, output.count("exchanged")), (0, 4), error)
                self.assertEqual(output.count("host 1 of 2, h1"), 2, output)

    # prterun does not tell its ranks where it was installed. It warns about clients with Debian's older PMIx, but
    # serves them.
    def test_ranks_join_by_prterun(self):
        hosts = self.make_hosts(2)
        words = ["-n", "4", JOINING, "join", "exchange", "100"]
        status, output, error = self.run_to_end(hosts, launchers.prterun(), *words)
        self.assertEqual((status, output.count("exchanged")), (0, 4), error)

    def test_cores_of_bound_ranks_are_counted_together(self):
        hosts = self.make_hosts(1)
        if os.cpu_count() < 2:
            raise Missing("needs two cores")
        launcher = [*launchers.openmpi4(), "--bind-to", "core"]
        status, output, error = self.run_to_end(hosts, launcher, "-n", "2", JOINING, "join", "arena")
        self.assertEqual((status, output.count(", cores 2,")), (0, 2), output + error)

    def test_ranks_of_one_host_exchange_greetings(self):
        hosts = self.make_hosts(1)
        for launcher in (launchers.openmpi4(), launchers.openmpi5()):
            status, output, error = self.run_to_end(hosts, launcher, "-n", "2", HELLO)
            lines = [f"rank {rank} of 2 heard: good morning from rank {1 - rank}" for rank in range(2)]
            self.assertEqual((status, sorted(output.splitlines()), error), (0, lines, ""))

    def test_a_forked_child_leaves_its_parent_in_the_job(self):
        hosts = self.make_hosts(2)
        words = ["join", "fork", "exchange", "100", "leave"]
        status, output, error = self.run_to_end(hosts, launchers.openmpi4(), "-n", "4", JOINING, *words)
        self.assertEqual((status, output.count("child ended with 7"), output.count("exchanged")), (0, 4, 4), error)

    def test_joining_a_second_time_is_refused(self):
        hosts = self.make_hosts(1)
        status, output, error = self.run_to_end(hosts, launchers.openmpi4(), "-n", "2", JOINING, "join", "again")
        self.assertEqual((status, output.count("has joined the launcher's job already")), (0, 2), error)


class Refusals(JoiningTest):
    def test_a_rank_of_another_program_is_refused(self):
        hosts = self.make_hosts(2)
        other = ["env", "EXCHANGE_KEY=tonari.introduction", compiled("pmix_exchange")]
        words = ["-n", "2", "--host", "h0:2", JOINING, "join", ":", "-n", "1", "--host", "h1", *other]
        status, _, error = self.run_to_end(hosts, [*launchers.openmpi5(), "--enable-recovery"], *words)
        self.assertEqual(error.count("rank 2 is another program, rank 0 is version 2 of joining"), 2, error)
        self.assertNotEqual(status, 0)

    def test_a_rank_that_never_joins_is_reported(self):
        hosts = self.make_hosts(2)
        lazy = f'[ $PMIX_RANK = 1 ] && exec sleep 1000; TONARI_JOIN_SECONDS=1 exec {JOINING} join'
        status, _, error = self.run_to_end(hosts, launchers.openmpi4(), "-n", "2", "sh", "-c", lazy)
        self.assertNotEqual(status, 0)
        self.assertIn("rank 0 has waited 1 s, and not all 2 ranks have joined", error)

    def test_a_second_attempt_after_a_failed_join_is_refused(self):
        lazy = f'[ $PMIX_RANK = 1 ] && exec sleep 1000; TONARI_JOIN_SECONDS=1 exec {JOINING} again again exit 1'
        _, output, error = self.run_to_end(self.make_hosts(2), launchers.openmpi4(), "-n", "2", "sh", "-c", lazy)
        lines = output.splitlines()
        self.assertEqual(len(lines), 2, output + error)
        self.assertIn("rank 0 has waited 1 s", lines[0])
        self.assertIn("this process has tried to join the launcher's job before", lines[1])

    def test_a_second_attempt_without_a_launcher_fails_like_the_first(self):
        env = {**os.environ, "PMIX_NAMESPACE": "gone", "PMIX_RANK": "0"}
        lines = self.make_hosts(1).run(0, JOINING, "again", "again", env=env).stdout.splitlines()
        self.assertEqual([line.count("connecting to the launcher by PMIx") for line in lines], [1, 1], lines)

    def test_a_launcher_that_is_gone_is_reported(self):
        hosts = self.make_hosts(1)
        done = hosts.run(0, HELLO, env={**os.environ, "PMIX_NAMESPACE": "gone", "PMIX_RANK": "0"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("unset PMIX_NAMESPACE to run alone", done.stderr)

    def test_a_missing_pmix_library_is_reported(self):
        known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
        paths = set(map(os.path.realpath, re.findall(r"libpmix\.so\.2 .*=> (.*)", known)))
        hidden = " && ".join(f"mount --bind /dev/null {path}" for path in paths)
        words = ["unshare", "--mount", "sh", "-c", f"{hidden or 'true'} && exec {HELLO}"]
        done = self.make_hosts(1).run(0, *words, env={**os.environ, "PMIX_NAMESPACE": "any", "PMIX_RANK": "0"})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"cannot join its job: .*libpmix\.so\.2: .*; .*apt-get install libpmix2")

    def test_a_launcher_without_pmix_is_refused(self):
        hosts = self.make_hosts(2)
        status, output, error = self.run_to_end(hosts, launchers.mpich(), "-n", "4", HELLO)
        self.assertEqual((status, output), (1, ""))
        remedy = "start them with `mpirun` of Open MPI, `srun --mpi=pmix` or `tonari run`"
        self.assertEqual(error.count(remedy), 4, error)


class Ends(JoiningTest):
    def test_a_rank_learns_how_its_neighbour_died(self):
        hosts = self.make_hosts(2)
        words = ["join", "pid", "only", "3", "hold", "only", "2", "wait"]
        job = self.start(hosts, [*launchers.openmpi5(), "--enable-recovery"], "-n", "4", JOINING, *words)
        self.check_death(job)

    def check_death(self, job):
        output = Lines(job.stdout)
        ids = [int(output.wait_for(rf"^{rank} is (\d+)").group(1)) for rank in range(4)]
        os.kill(ids[3], signal.SIGKILL)
        # Only Linux 6.15 and later report reliably how the process ended.
        output.wait_for(r"^3 died: signal (9 status 0|0 status -1)$")
        job.wait(PATIENCE)

    def test_ranks_notice_that_the_launchers_server_ended(self):
        hosts = self.make_hosts(2)
        for launcher in (launchers.openmpi4(), launchers.openmpi5()):
            told = f"exec {JOINING} join pid await-server leave >{SHARED}/rank$PMIX_RANK"
            job = self.start(hosts, launcher, "-n", "4", "sh", "-c", told)
            paths = [os.path.join(SHARED, f"rank{rank}") for rank in range(4)]
            texts = [eventually(lambda: self.match(path, r"is (\d+)"), f"{path} names its process") for path in paths]
            with open(f"/proc/{texts[3].group(1)}/stat") as file:
                os.kill(int(file.read().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
            for path in paths[2:]:
                eventually(lambda: self.match(path, "orphaned"), f"{path} says that its server is gone")
            job.wait(PATIENCE)
            for path in paths:
                os.unlink(path)

    def match(self, path, pattern):
        try:
            with open(path) as file:
                return re.search(pattern, file.read())
        except FileNotFoundError:
            return None


class WithMpi(JoiningTest):
    """A program that uses both tonari and MPI."""

    def check(self, launcher, mpicc, *words):
        need(mpicc, install="scripts/setup bench, scripts/setup cluster")
        part = os.path.join(SHARED, "mpi_part.so")
        tell(mpicc, "-shared", "-fPIC", "-o", part, str(FOLDER / "programs" / "mpi_part.c"))
        hosts = self.make_hosts(2)
        command = ["env", f"LD_PRELOAD={part}", JOINING, *words]
        status, output, error = self.run_to_end(hosts, launcher, "-n", "4", *command)
        self.assertEqual((status, output.count("sum 10"), output.count("exchanged")), (0, 4, 4), output + error)

    def check_4(self, *words):
        self.check(launchers.openmpi4(), "mpicc.openmpi", *words)

    def check_5(self, *words):
        self.check(launchers.openmpi5(), os.path.join(launchers.OPENMPI5, "bin", "mpicc"), *words)

    def test_open_mpi_4_works_if_started_before_joining_and_ended_before_leaving(self):
        self.check_4("mpi-begin", "join", "mpi-sum", "mpi-end", "exchange", "9")

    def test_open_mpi_4_works_if_started_before_joining_and_ended_after_leaving(self):
        self.check_4("mpi-begin", "join", "exchange", "9", "leave", "mpi-sum", "mpi-end")

    def test_open_mpi_4_works_if_started_after_joining_and_ended_after_leaving(self):
        self.check_4("join", "mpi-begin", "exchange", "9", "leave", "mpi-sum", "mpi-end")

    def test_open_mpi_4_works_if_started_and_ended_within_the_job(self):
        self.check_4("join", "mpi-begin", "mpi-sum", "mpi-end", "exchange", "9")

    # MPI_Init of Open MPI 5 fails if other code has initialised PMIx before: docs/modules/job.md.
    def test_open_mpi_5_works_if_started_before_joining_and_ended_before_leaving(self):
        self.check_5("mpi-begin", "join", "mpi-sum", "mpi-end", "exchange", "9")

    def test_open_mpi_5_works_if_started_before_joining_and_ended_after_leaving(self):
        self.check_5("mpi-begin", "join", "exchange", "9", "leave", "mpi-sum", "mpi-end")


class BySlurm(OnSlurm, JoiningTest):
    def srun(self, *words):
        return self.run_to_end(self.hosts, ["srun", "-Q"], *words, env=self.slurm.environment)

    def test_ranks_join_by_srun(self):
        words = ["-N", "2", "-n", "4", "--mpi=pmix", JOINING, "join", "arena", "exchange", "2000", "leave"]
        self.check_joined(self.srun(*words), 4, 2)

    def test_a_rank_started_by_srun_learns_how_its_neighbour_died(self):
        words = ["-N", "2", "-n", "4", "--mpi=pmix", JOINING, "join", "pid", "only", "3", "hold", "only", "2", "wait"]
        Ends.check_death(self, self.start(self.hosts, ["srun", "-Q"], *words, env=self.slurm.environment))

    def test_tonari_run_starts_ranks_by_srun(self):
        words = ["-N", "2", "-n", "4", TONARI, "run", "--hosts", "2", "-n", "4", JOINING, "join", "exchange", "9"]
        status, output, error = self.run_to_end(self.hosts, ["salloc", "-Q"], *words, env=self.slurm.environment)
        self.assertEqual((status, output.count("exchanged"), output.count("host 1 of 2, h1")), (0, 4, 2), error)

    def test_srun_without_pmix_is_refused(self):
        for kind in ("none", "pmi2"):
            status, output, error = self.srun("-n", "2", f"--mpi={kind}", HELLO)
            self.assertEqual((status, output, error.count("`srun --mpi=pmix`")), (1, "", 2), error)

    def test_a_single_process_in_an_allocation_runs_alone(self):
        for words in (["salloc", "-n", "2", HELLO], ["srun", "-Q", "--mpi=none", "-n", "1", HELLO]):
            status, output, error = self.run_to_end(self.hosts, words, env=self.slurm.environment)
            self.assertEqual((status, output), (0, "rank 0 of 1 heard: good morning from rank 0\n"), error)


if __name__ == "__main__":
    main()
