"""Windows between hosts: every primitive, in windows that have both ranks of the same host and ranks of other hosts."""

import os
import re
import signal
import time

from bed import FOLDER, launchers
from bed.case import LauncherTest, OnSlurm
from bed.deaths import DEATH_BOUND, IMPATIENT
from bed.hosts import SLOW
from bed.world import main
from harness.jobs import PATIENCE, PROGRAMS, Lines, eventually, state_of

WINDOWS = os.path.join(PROGRAMS, "windows")
LOCKS = os.path.join(PROGRAMS, "window_locks")
ROUNDS = os.path.join(PROGRAMS, "window_rounds")
DEATHS = os.path.join(PROGRAMS, "window_deaths")
WITH_A_CARD = os.path.join(FOLDER, "with_a_card")


def openmpi4(*options):
    return launchers.unbound(launchers.openmpi4(), *options)


def openmpi5(*options):
    return launchers.unbound(launchers.openmpi5(), *options)


UCX_ABORTED = re.compile(r"ucp_request\.c:\d+ +Assertion .*UCP_WIREUP_MSG")


class WindowsTest(LauncherTest):
    def check_done(self, hosts, launcher, ranks, *words, program=None, **options):
        """Checks that every rank reports success and that the job writes nothing to standard error."""
        with self.subTest(launcher=os.path.basename(launcher[0]), words=words):
            since = time.monotonic()
            command = ["-n", str(ranks), program or WINDOWS, *words]
            status, output, error = self.run_to_end(hosts, launcher, *command, **options)
            self.assertEqual((status, error), (0, ""))
            self.assertCountEqual(output.splitlines(), [f"rank {rank} did it" for rank in range(ranks)])
            print(f"{' '.join(words)} {time.monotonic() - since:.1f} s", end=" ... ", flush=True)

    def start_ready(self, hosts, launcher, ranks, *command, **options):
        """Starts a job and waits until its ranks are ready. Returns the job, its output lines and its process ids."""
        job = self.start(hosts, launcher, "-n", str(ranks), *command, **options)
        output = Lines(job.stdout)
        pids = [int(output.wait_for(rf"^{rank} is (\d+)").group(1)) for rank in range(ranks)]
        for rank in range(ranks):
            output.wait_for(rf"^rank {rank} is ready")
        return job, output, pids

    def check_survivors(self, output, victims, survivors):
        """Checks that all survivors learn of the deaths, and finish."""
        for survivor in survivors:
            for victim in victims:
                output.wait_for(rf"^rank {survivor} heard that {victim} of ")
                output.wait_for(rf"^rank {survivor} saw peer_gone of {victim}")
        for survivor in survivors:
            output.wait_for(rf"^rank {survivor} did it")

    def check_deaths(self, output, victims, survivors, pids):
        """Kills the victims. Checks that the survivors learn of it within DEATH_BOUND, and finish."""
        since = time.monotonic()
        for victim in victims:
            os.kill(pids[victim], signal.SIGKILL)
        self.check_survivors(output, victims, survivors)
        self.assertLess(time.monotonic() - since, DEATH_BOUND)


class Primitives(WindowsTest):
    def test_all_primitives_work_on_two_hosts(self):
        hosts = self.make_hosts(2)
        for words in (("copies", "1"), ("locks",), ("queues",), ("words",), ("barriers",), ("alone",), ("mistakes",),
                      ("freed",)):
            self.check_done(hosts, openmpi4(), 4, *words)

    def test_copies_locks_and_barriers_work_on_four_hosts(self):
        hosts = self.make_hosts(4)
        for words in (("copies", "2"), ("locks",), ("barriers",)):
            self.check_done(hosts, openmpi5("--host", "h0,h1,h2,h3"), 4, *words)

    def test_primitives_work_when_hosts_have_unequal_numbers_of_ranks(self):
        hosts = self.make_hosts(3)
        for words in (("copies", "3"), ("locks",), ("barriers",), ("freed",)):
            self.check_done(hosts, openmpi4("--host", "h0:3,h1:1,h2:1"), 5, *words)

    # With this mapping, ranks R and R + 1 are on different hosts.
    def test_copies_locks_and_barriers_work_with_ranks_mapped_round_robin(self):
        hosts = self.make_hosts(2)
        for words in (("copies", "4"), ("locks",), ("barriers",)):
            self.check_done(hosts, openmpi4("--map-by", "node"), 4, *words)

    # This holds for both kinds of memory, and however many ranks a host has.
    def test_multicasts_cross_the_link_once(self):
        hosts = self.make_hosts(2)
        times = 16
        before = hosts.traffic(1).received + hosts.traffic(0).received
        self.check_done(hosts, openmpi4("--host", "h0:2,h1:3"), 5, "multicast", str(times))
        crossed = (hosts.traffic(1).received + hosts.traffic(0).received - before) / (2 * times) / 2**20
        self.assertTrue(1.0 <= crossed < 1.2, f"{crossed:.2f} times")

    def test_copies_work_without_service_thread_or_direct_copies(self):
        hosts = self.make_hosts(2)
        for setting in ("TONARI_SERVICE_THREAD=off", "TONARI_DIRECT_COPIES=off"):
            self.check_done(hosts, openmpi4("-x", setting), 4, "copies", "5")

    def test_many_threads_of_a_rank_copy_at_once(self):
        hosts = self.make_hosts(2)
        self.check_done(hosts, openmpi4(), 2, "crowd")
        self.check_done(hosts, openmpi4("-x", "TONARI_DIRECT_COPIES=off", "--host", "h0:2"), 2, "crowd")

    # Runs the code for RDMA cards without a card: UCX then emulates access by key, and the owner's process copies.
    def test_copies_by_key_work(self):
        hosts = self.make_hosts(2)
        for words in (("copies", "7"), ("queues",), ("freed",), ("crowd",)):
            self.check_done(hosts, openmpi4(), 4, WINDOWS, *words, program=WITH_A_CARD)

    def test_primitives_work_over_a_link_that_loses_packets(self):
        hosts = self.make_hosts(2)
        for host in (0, 1):
            hosts.lose(host, 0.02)
        for words in (("copies", "6"), ("locks",), ("queues",)):
            self.check_done(hosts, openmpi4(), 4, *words)

    def test_copies_work_over_a_slow_link(self):
        hosts = self.make_hosts(2)
        for host in (0, 1):
            hosts.limit(host, SLOW)
        for words in (("copies", "7"), ("queues",), ("multicast", "1")):
            self.check_done(hosts, openmpi4(), 4, *words)


class Locks(WindowsTest):
    # The order does not depend on the hosts of the ranks.
    def test_locks_are_granted_in_the_order_of_requests(self):
        hosts = self.make_hosts(2)
        for mapping in ("slot", "node"):
            self.check_done(hosts, openmpi4("--map-by", mapping), 4, "order", program=LOCKS)

    def test_no_rank_gets_a_lock_twice_while_another_waits(self):
        self.check_done(self.make_hosts(2), openmpi4(), 4, "fair", program=LOCKS)

    # Rank 0, on the other host, holds the lock. Its neighbour, rank 1, must learn that the lock's home died. Rank 3, on
    # the host of the home, takes over the lock, with the status that its holder died.
    def test_waiters_learn_that_a_locks_home_died(self):
        hosts = self.make_hosts(2)
        job, output, pids = self.start_ready(hosts, openmpi5("--enable-recovery"), 4, LOCKS, "home")
        since = time.monotonic()
        os.kill(pids[2], signal.SIGKILL)
        output.wait_for("^rank 1 was told peer_gone")
        output.wait_for("^rank 3 was told holder_died")
        self.assertLess(time.monotonic() - since, DEATH_BOUND)
        for rank in (0, 1, 3):
            output.wait_for(f"^rank {rank} did it")
        job.wait(PATIENCE)


class Deaths(WindowsTest):
    # The victim holds a lock whose home is on the other host, or on its own. Exactly one waiter gets holder_died.
    def test_one_waiter_learns_that_the_holder_of_a_lock_died(self):
        hosts = self.make_hosts(2)
        for victim in (3, 1):
            with self.subTest(victim=victim):
                launcher = openmpi5("--enable-recovery")
                job, output, pids = self.start_ready(hosts, launcher, 4, WINDOWS, "dies", str(victim))
                since = time.monotonic()
                os.kill(pids[victim], signal.SIGKILL)
                survivors = set(range(4)) - {victim}
                for rank in survivors:
                    output.wait_for(rf"^rank {rank} saw peer_gone of {victim}")
                self.assertLess(time.monotonic() - since, DEATH_BOUND)
                told = [output.wait_for(rf"^rank {rank} was told (\w+)").group(1) for rank in survivors]
                self.assertCountEqual(told, ["holder_died", "ok", "ok"])
                job.wait(PATIENCE)

    # The victim dies at some moment while the window is made. The others give it up, and make one without the victim. UCX
    # 1.13 now and then aborts a rank whose peer dies while the two connect (docs/modules/fabric.md, "Limits"): then the
    # turn is repeated.
    def test_survivors_of_a_death_while_a_window_is_made_can_make_another(self):
        hosts = self.make_hosts(2)
        for turn in range(8):
            victim, moment = turn % 4, 3000 + 317 * turn
            with self.subTest(victim=victim, moment=moment):
                words = ("dies_making", str(victim), str(moment))
                error = self.run_survivors(hosts, victim, words)
                for _ in range(2):
                    if UCX_ABORTED.search(error):
                        error = self.run_survivors(hosts, victim, words)
                self.assertEqual(error, "")

    def run_survivors(self, hosts, victim, words):
        """Returns the error output if a survivor did not finish, otherwise nothing."""
        job = self.start(hosts, openmpi5("--enable-recovery"), "-n", "4", WINDOWS, *words)
        output, error = job.communicate(timeout=PATIENCE)
        finished = {f"rank {rank} did it" for rank in set(range(4)) - {victim}} <= set(output.splitlines())
        return "" if finished else error or f"no survivor said why; their output: {output!r}"

    # Each of ranks 0 to 2 is on a host of its own. They see the same statuses as on one host, with one exception: the
    # home may grant the lock to the dead waiter before it learns of the death, and then the next waiter gets
    # holder_died. The phase `owner` is left out: UCX 1.13 sometimes aborts a rank that has many long sends in flight to
    # a rank that dies (assertion `comp->count > 0`).
    def test_calls_of_survivors_end_with_the_right_status_in_every_phase(self):
        hosts = self.make_hosts(3)
        launcher = openmpi5("--enable-recovery", "--host", "h0,h1,h2")
        for phase, sleepers, answer in (("holding", (0, 2), "holder_died"), ("reading", (0, 2), "ok"),
                                        ("waiting", (1, 2), "(ok|holder_died)"), ("barrier", (0, 2), "peer_gone"),
                                        ("notice", (0, 2), "peer_gone"), ("making", (0, 2), "peer_gone"),
                                        ("pushing", (), "peer_gone")):
            with self.subTest(phase):
                job, output, pids = self.start_ready(hosts, launcher, 3, DEATHS, phase, "live")
                for rank in sleepers:
                    eventually(lambda: state_of(pids[rank]) == "S", f"rank {rank} sleeps")
                since = time.monotonic()
                if phase != "pushing":  # in this phase rank 0 kills rank 1
                    os.kill(pids[1], signal.SIGKILL)
                for rank in (0, 2):
                    output.wait_for(rf"^rank {rank} saw {answer}$")
                if phase != "pushing":
                    self.assertLess(time.monotonic() - since, DEATH_BOUND)
                for rank in (0, 2):
                    output.wait_for(rf"^rank {rank} went on")
                job.wait(PATIENCE)

    def test_survivors_go_on_when_all_ranks_of_a_host_die_during_accesses(self):
        hosts = self.make_hosts(2)
        job, output, pids = self.start_ready(hosts, openmpi5("--enable-recovery"), 4, ROUNDS, "2", "3")
        self.check_deaths(output, (2, 3), (0, 1), pids)
        job.wait(PATIENCE)


class Silence(WindowsTest):
    """A host falls silent while windows are accessed. The ranks on each side take the ranks on the other side for dead.

    messages.py checks how soon they do.
    """

    # Ranks 0, 1 and 4 go on together: a rank that has lost ranks 2 and 3 tells all others, which then close their
    # connections to 2 and 3.
    def check_host_1_is_cut_off(self, part, join):
        hosts = self.make_hosts(3)
        victims = ["2 3", "2 3", "0 1 4", "0 1 4", "2 3"]
        told = " ".join(f"[ $PMIX_RANK = {rank} ] && exec {ROUNDS} {of};" for rank, of in enumerate(victims))
        launcher = openmpi5("--enable-recovery", "--host", "h0:2,h1:2,h2:1", *IMPATIENT)
        job, output, _ = self.start_ready(hosts, launcher, 5, "sh", "-c", told)
        part(hosts)
        self.check_survivors(output, (2, 3), (0, 1))
        join(hosts)  # so that the launcher receives the output of the other hosts
        self.check_survivors(output, (2, 3), (4,))
        self.check_survivors(output, (0, 1, 4), (2, 3))
        job.wait(PATIENCE)

    def test_both_sides_of_a_cut_link_go_on(self):
        self.check_host_1_is_cut_off(lambda hosts: hosts.cut(0, 1), lambda hosts: hosts.heal(0, 1))

    def test_both_sides_go_on_when_a_host_is_unplugged(self):
        self.check_host_1_is_cut_off(lambda hosts: hosts.unplug(1), lambda hosts: hosts.plug(1))


class BySlurm(OnSlurm, WindowsTest):
    SRUN = ["srun", "-Q", "-N", "2", "--mpi=pmix"]

    def test_copies_locks_and_queues_work_on_slurm(self):
        for words in (("copies", "8"), ("locks",), ("queues",)):
            self.check_done(self.hosts, self.SRUN, 4, *words, env=self.slurm.environment)

    def test_all_survivors_of_a_death_on_slurm_learn_of_it(self):
        job, output, pids = self.start_ready(self.hosts, self.SRUN, 4, ROUNDS, "3", env=self.slurm.environment)
        self.check_deaths(output, (3,), (0, 1, 2), pids)
        job.wait(PATIENCE)

    def test_scancel_ends_a_job_that_accesses_windows(self):
        job, _, _ = self.start_ready(self.hosts, self.SRUN, 4, ROUNDS, env=self.slurm.environment)
        self.slurm.run("scancel", *self.slurm.jobs())
        job.wait(PATIENCE)
        self.assertNotEqual(job.returncode, 0)


if __name__ == "__main__":
    main()
