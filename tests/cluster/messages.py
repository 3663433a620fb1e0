"""Messages between hosts: all messages arrive. When a rank dies, leaves or cannot be reached, the others learn of it.

Unless a test says otherwise, each host has two ranks, so that one job uses both
the shared-memory and the network transport.
"""

import os
import signal
import time

from bed import launchers
from bed.case import HELLO, LauncherTest, OnSlurm
from bed.deaths import DEATH_BOUND, IMPATIENT, IMPATIENT_BOUND, SILENCE_BOUND
from bed.hosts import SLOW, Hosts
from bed.world import main
from harness.jobs import PATIENCE, PROGRAMS, TONARI, Lines

MESSAGES = os.path.join(PROGRAMS, "messages")
DEATHS = os.path.join(PROGRAMS, "message_deaths")


def openmpi4(*options):
    return launchers.unbound(launchers.openmpi4(), *options)


def openmpi5(*options):
    return launchers.unbound(launchers.openmpi5(), *options)


class MessagesTest(LauncherTest):
    def check_done(self, hosts, launcher, ranks, *words, **options):
        """Checks that every rank reports success and that the job writes nothing to standard error."""
        with self.subTest(launcher=os.path.basename(launcher[0]), words=words):
            status, output, error = self.run_to_end(hosts, launcher, "-n", str(ranks), MESSAGES, *words, **options)
            self.assertEqual((status, error), (0, ""))
            self.assertCountEqual(output.splitlines(), [f"rank {rank} did it" for rank in range(ranks)])

    def check_hello(self, hosts, launcher, ranks, **options):
        status, output, error = self.run_to_end(hosts, launcher, "-n", str(ranks), HELLO, **options)
        heard = [f"rank {rank} of {ranks} heard: good morning from rank {(rank - 1) % ranks}" for rank in range(ranks)]
        self.assertEqual((status, sorted(output.splitlines()), error), (0, heard, ""))

    def start_rounds(self, hosts, launcher, ranks, *words, **options):
        """Starts a job and waits until its ranks exchange messages. Returns the job, its output and its process ids."""
        job = self.start(hosts, launcher, "-n", str(ranks), *(words or [MESSAGES, "rounds"]), **options)
        output = Lines(job.stdout)
        pids = [int(output.wait_for(rf"^{rank} is (\d+)").group(1)) for rank in range(ranks)]
        for rank in range(ranks):
            output.wait_for(rf"^rank {rank} is ready")
        return job, output, pids

    def check_survivors(self, output, victims, survivors, since, bound):
        """Checks that all survivors learn of the deaths within the bound, and finish."""
        for survivor in survivors:
            for victim, host in victims.items():
                output.wait_for(rf"^rank {survivor} heard that {victim} of {host} died")
                output.wait_for(rf"^rank {survivor} saw peer_gone of {victim}")
        self.check_latency(since, bound)
        for survivor in survivors:
            output.wait_for(rf"^rank {survivor} did it")

    def check_latency(self, since, bound):
        took = time.monotonic() - since
        print(f"known to all after {took:.2f} s", end=" ... ", flush=True)
        self.assertLess(took, bound)


class Traffic(MessagesTest):
    def test_every_rank_receives_its_neighbours_greeting(self):
        hosts = self.make_hosts(4)
        for launcher in (openmpi4(), openmpi5()):
            self.check_hello(hosts, [*launcher, "--map-by", "node"], 4)
            self.check_hello(hosts, launcher, 8)

    def test_messages_arrive_between_two_hosts(self):
        hosts = self.make_hosts(2)
        self.check_done(hosts, openmpi4(), 4, "exchange")
        self.check_done(hosts, openmpi5(), 4, "announced")
        for seed in ("1", "2"):
            self.check_done(hosts, openmpi5(), 4, "traffic", seed)

    def test_messages_and_collectives_work_on_four_hosts(self):
        hosts = self.make_hosts(4)
        self.check_done(hosts, openmpi4("--host", "h0,h1,h2,h3"), 4, "collectives")
        self.check_done(hosts, openmpi5(), 8, "traffic", "3")

    # With this mapping, ranks R and R + 1 are on different hosts.
    def test_messages_and_collectives_work_with_ranks_mapped_round_robin(self):
        hosts = self.make_hosts(2)
        self.check_done(hosts, openmpi4("--map-by", "node"), 4, "collectives")
        self.check_done(hosts, openmpi5("--map-by", "node"), 4, "traffic", "5")

    # Data cross the link to a host once, however many ranks the host has. Per host, a broadcast or an all-reduce of
    # 1 MiB needs the whole 1 MiB, and an all-gather needs the other host's half.
    def test_collectives_cross_the_link_once(self):
        hosts = self.make_hosts(2)
        times = 32
        for mapping in ("slot", "node"):
            for what, share in (("broadcast", 1.0), ("all_reduce", 1.0), ("all_gather", 0.5)):
                if (what, mapping) == ("all_reduce", "node"):
                    continue  # here keeping the order of the operands costs more traffic
                before = hosts.traffic(1).received + hosts.traffic(0).received
                self.check_done(hosts, openmpi4("--map-by", mapping), 4, what, times)
                crossed = (hosts.traffic(1).received + hosts.traffic(0).received - before) / times / 2**20
                least = 1.0 if what == "broadcast" else 2.0 * share
                self.assertTrue(least <= crossed < 1.2 * least, f"{what}: {crossed:.2f} MiB by {mapping}")

    def test_messages_arrive_without_service_thread_or_direct_copies(self):
        hosts = self.make_hosts(2)
        for setting in ("TONARI_SERVICE_THREAD=off", "TONARI_DIRECT_COPIES=off"):
            self.check_done(hosts, openmpi4("-x", setting), 4, "traffic", "6")

    def test_messages_arrive_in_a_job_started_by_tonari_run(self):
        hosts = self.make_hosts(2)
        for launcher in (launchers.openmpi4(), launchers.openmpi5()):
            path = f"{os.path.dirname(launcher[0])}:{os.environ['PATH']}".lstrip(":")
            env = {**os.environ, **launchers.environment(hosts), "PATH": path}
            self.check_done(hosts, [TONARI, "run", "--hosts", "2"], 4, "traffic", "7", env=env)

    def test_ranks_listen_on_ports_of_the_configured_range(self):
        hosts = self.make_hosts(2)
        for launcher in (launchers.openmpi4(), launchers.openmpi5()):
            path = f"{os.path.dirname(launcher[0])}:{os.environ['PATH']}".lstrip(":")
            env = {**os.environ, **launchers.environment(hosts), "PATH": path, "UCX_TCP_PORT_RANGE": "20000-20999"}
            job = self.start(hosts, [TONARI, "run", "--hosts", "h0,h1"], MESSAGES, "wait", env=env)
            Lines(job.stdout).wait_for("is ready", 2)
            for host in (0, 1):
                ports = self.listened_at(hosts, host)
                self.assertTrue(any(20000 <= port <= 20999 for port in ports), f"host {host}: {ports}")
            job.terminate()
            job.wait(PATIENCE)

    def test_too_small_a_port_range_is_reported(self):
        hosts = self.make_hosts(1)
        words = ["-x", "TONARI_APART=network", "-n", "2", HELLO]
        _, _, error = self.run_to_end(hosts, openmpi4("-x", "UCX_TCP_PORT_RANGE=20000-20000"), *words)
        self.assertIn("Device is busy; see ulimit -n and, where UCX_TCP_PORT_RANGE is set, whether it has free ports",
                      error)

    def listened_at(self, hosts, host):
        """Returns the TCP ports on which processes of a host listen."""
        rows = [line.split() for line in hosts.run(host, "cat", "/proc/net/tcp").stdout.splitlines()[1:]]
        return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"]

    def test_messages_arrive_over_a_link_that_loses_packets(self):
        hosts = self.make_hosts(2)
        for host in (0, 1):
            hosts.lose(host, 0.02)
        self.check_done(hosts, openmpi4(), 4, "traffic", "8")

    def test_messages_arrive_over_a_slow_link(self):
        hosts = self.make_hosts(2)
        for host in (0, 1):
            hosts.limit(host, SLOW)
        for words in (("announced",), ("traffic", "10"), ("broadcast", "16")):
            self.check_done(hosts, openmpi4(), 4, *words)

    def test_messages_of_a_rank_that_leaves_early_arrive(self):
        hosts = self.make_hosts(2)
        for launcher in (openmpi4(), openmpi5()):
            self.check_done(hosts, launcher, 4, "leave")


class Deaths(MessagesTest):
    def test_all_survivors_learn_of_a_death_while_messages_are_exchanged(self):
        hosts = self.make_hosts(2)
        launcher = openmpi5("--enable-recovery")
        job, output, pids = self.start_rounds(hosts, launcher, 4, MESSAGES, "rounds", "3")
        os.kill(pids[3], signal.SIGKILL)
        self.check_survivors(output, {3: "h1"}, (0, 1, 2), time.monotonic(), DEATH_BOUND)
        job.wait(PATIENCE)

    def test_a_rank_learns_of_the_death_of_one_it_never_sent_to(self):
        hosts = self.make_hosts(2)
        job, output, pids = self.start_rounds(hosts, openmpi5("--enable-recovery"), 4, MESSAGES, "quiet")
        os.kill(pids[3], signal.SIGKILL)
        self.check_survivors(output, {3: "h1"}, (0, 1, 2), time.monotonic(), DEATH_BOUND)
        job.wait(PATIENCE)

    def test_survivors_learn_that_all_ranks_of_a_host_died(self):
        hosts = self.make_hosts(2)
        launcher = openmpi5("--enable-recovery")
        job, output, pids = self.start_rounds(hosts, launcher, 4, MESSAGES, "rounds", "2", "3")
        for pid in pids[2:]:
            os.kill(pid, signal.SIGKILL)
        self.check_survivors(output, {2: "h1", 3: "h1"}, (0, 1), time.monotonic(), DEATH_BOUND)
        job.wait(PATIENCE)

    # Each of ranks 0 to 2 is on a host of its own.
    def test_calls_of_survivors_return_peer_gone_in_every_phase(self):
        hosts = self.make_hosts(3)
        launcher = openmpi5("--enable-recovery", "--host", "h0,h1,h2")
        for phase in ("anyone", "reduce", "copy"):
            with self.subTest(phase):
                job = self.start(hosts, launcher, "-n", "3", DEATHS, phase, "live")
                output = Lines(job.stdout)
                victim = int(output.wait_for(r"^1 is (\d+)").group(1))
                output.wait_for("is ready", 3)
                if phase != "copy":
                    os.kill(victim, signal.SIGKILL)
                for rank in (0, 2):
                    output.wait_for(rf"^rank {rank} saw peer_gone")
                    output.wait_for(rf"^rank {rank} went on")
                job.wait(PATIENCE)

    def test_a_death_without_a_handler_ends_the_job(self):
        hosts = self.make_hosts(2)
        job, _, pids = self.start_rounds(hosts, openmpi5("--enable-recovery"), 4)
        os.kill(pids[3], signal.SIGKILL)
        job.wait(PATIENCE)
        error = job.stderr.read()
        # The first rank that notices the death stops. Other ranks may notice only that rank's end.
        how = r"(has gone( \(.+\))?|was killed by signal 9 \(Killed\))"
        self.assertRegex(error, rf"(?m)^tonari: rank \d stops because rank 3 \(host h1\) {how}$")
        self.assertNotEqual(job.returncode, 0)


class Silence(MessagesTest):
    """A host falls silent: nothing arrives from it any more, not even the closing of its connections."""

    # The ranks of each host take the ranks of the other host for dead, and go on alone.
    def test_ranks_on_both_sides_of_a_cut_link_take_the_others_for_dead(self):
        hosts = self.make_hosts(2)
        told = f'[ $PMIX_RANK -lt 2 ] && exec {MESSAGES} rounds 2 3; exec {MESSAGES} rounds 0 1'
        launcher = openmpi5("--enable-recovery", *IMPATIENT)
        job, output, _ = self.start_rounds(hosts, launcher, 4, "sh", "-c", told)
        hosts.cut(0, 1)
        since = time.monotonic()
        self.check_survivors(output, {2: "h1", 3: "h1"}, (0, 1), since, IMPATIENT_BOUND)
        hosts.heal(0, 1)  # so that the launcher receives the output of the other host
        for survivor in (2, 3):  # no time is checked: their output was held back by the cut
            output.wait_for(rf"^rank {survivor} did it")
        job.wait(PATIENCE)

    # No data are in flight, so only the kernel's TCP keepalive can notice the cut.
    def test_a_cut_link_is_noticed_while_all_ranks_wait(self):
        hosts = self.make_hosts(2)
        job = self.start(hosts, openmpi5("--enable-recovery", "--host", "h0,h1"), "-n", "2", MESSAGES, "wait")
        output = Lines(job.stdout)
        output.wait_for("is ready", 2)
        hosts.cut(0, 1)
        since = time.monotonic()
        output.wait_for("^rank 0 did it")
        self.check_latency(since, SILENCE_BOUND)
        hosts.heal(0, 1)
        output.wait_for("^rank 1 did it")
        job.wait(PATIENCE)

    # The result must not depend on which side made the connection: UCX enables TCP keepalive only on that side.
    def test_an_unplugged_host_is_noticed_whichever_side_connected(self):
        hosts = self.make_hosts(3)
        for victim in (1, 2):
            with self.subTest(victim=victim):
                launcher = openmpi5("--enable-recovery", *IMPATIENT, "--host", "h1,h2")
                job = self.start(hosts, launcher, "-n", "2", MESSAGES, "wait")
                output = Lines(job.stdout)
                output.wait_for("is ready", 2)
                hosts.unplug(victim)
                since = time.monotonic()
                output.wait_for(f"^rank {2 - victim} did it")
                self.check_latency(since, IMPATIENT_BOUND)
                hosts.plug(victim)
                output.wait_for(f"^rank {victim - 1} did it")
                job.wait(PATIENCE)

    # The launcher's daemon on that host survives, unlike with Hosts.crash(): the launcher ends the job if it loses a
    # daemon.
    def test_deaths_on_an_unplugged_host_are_noticed(self):
        hosts = self.make_hosts(2)
        launcher = openmpi5("--enable-recovery", *IMPATIENT)
        job, output, pids = self.start_rounds(hosts, launcher, 4, MESSAGES, "rounds", "2", "3")
        hosts.unplug(1)
        since = time.monotonic()
        for pid in pids[2:]:
            os.kill(pid, signal.SIGKILL)
        self.check_survivors(output, {2: "h1", 3: "h1"}, (0, 1), since, IMPATIENT_BOUND)
        hosts.plug(1)
        job.wait(PATIENCE)


class OutOfReach(MessagesTest):
    """The ranks are alive, but the network has no route between them."""

    def check(self, hosts, launcher, setting=":"):
        words = ["--host", "h0,h1", "-n", "2", "sh", "-c", f"{setting}; exec {MESSAGES} exchange"]
        status, _, error = self.run_to_end(hosts, launcher, *words)
        self.assertNotEqual(status, 0)
        told = r"(?m)^tonari\[\d\]: rank (\d) \(host h\1\) cannot be reached \([\w ]+\) and counts as dead: .*" \
               r"TONARI_UCX_NET_DEVICES chooses them"
        self.assertRegex(error, told)
        self.assertNotIn("has gone", error)

    def test_missing_or_unconnected_devices_are_reported(self):
        hosts = self.make_hosts(2)
        for device in ("eth7", "lo"):
            with self.subTest(device):
                self.check(hosts, openmpi4("-x", f"TONARI_UCX_NET_DEVICES={device}"))

    def test_a_wrong_device_of_one_rank_is_reported(self):
        self.check(self.make_hosts(2), openmpi5(), "[ $PMIX_RANK = 1 ] && export TONARI_UCX_NET_DEVICES=lo")

    def test_a_firewall_between_ranks_is_reported(self):
        hosts = self.make_hosts(2)
        rules = ("table inet wall { chain in { type filter hook input priority 0; tcp dport 20000-20999 drop; }; "
                 "chain out { type filter hook output priority 0; tcp dport 20000-20999 drop; }; }")
        self.assertEqual(hosts.run(1, "nft", rules).returncode, 0)
        self.check(hosts, openmpi4("-x", "UCX_TCP_PORT_RANGE=20000-20999", *IMPATIENT))


class Ends(MessagesTest):
    def test_a_signal_to_the_launcher_ends_the_job(self):
        hosts = self.make_hosts(2)
        for launcher in (openmpi4(), openmpi5()):
            job, _, _ = self.start_rounds(hosts, launcher, 4)
            job.send_signal(signal.SIGINT)
            job.wait(PATIENCE)
            self.assertNotEqual(job.returncode, 0)


class BySlurm(OnSlurm, MessagesTest):
    SRUN = ["srun", "-Q", "-N", "2", "--mpi=pmix"]

    def test_messages_and_collectives_work_on_slurm(self):
        self.check_hello(self.hosts, self.SRUN, 4, env=self.slurm.environment)
        for words in (["announced"], ["collectives"], ["traffic", "9"]):
            self.check_done(self.hosts, self.SRUN, 4, *words, env=self.slurm.environment)

    def test_all_survivors_of_a_death_on_slurm_learn_of_it(self):
        words = [MESSAGES, "rounds", "3"]
        job, output, pids = self.start_rounds(self.hosts, self.SRUN, 4, *words, env=self.slurm.environment)
        os.kill(pids[3], signal.SIGKILL)
        self.check_survivors(output, {3: "h1"}, (0, 1, 2), time.monotonic(), DEATH_BOUND)
        job.wait(PATIENCE)

    def test_scancel_ends_a_job_that_exchanges_messages(self):
        job, _, _ = self.start_rounds(self.hosts, self.SRUN, 4, env=self.slurm.environment)
        self.slurm.run("scancel", *self.slurm.jobs())
        job.wait(PATIENCE)
        self.assertNotEqual(job.returncode, 0)


if __name__ == "__main__":
    main()
