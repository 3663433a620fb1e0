"""Messages between hosts: everything arrives, and whoever dies, leaves or cannot be reached any more, the others learn of it.

Two ranks on each host, so that one job has both transports, unless a test says otherwise.
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
        """All ranks do it, and nobody complains."""
        with self.subTest(launcher=os.path.basename(launcher[0]), words=words):
            status, output, error = self.run_to_end(hosts, launcher, "-n", str(ranks), MESSAGES, *words, **options)
            self.assertEqual((status, error), (0, ""))
            self.assertCountEqual(output.splitlines(), [f"rank {rank} did it" for rank in range(ranks)])

    def check_hello(self, hosts, launcher, ranks, **options):
        status, output, error = self.run_to_end(hosts, launcher, "-n", str(ranks), HELLO, **options)
        heard = [f"rank {rank} of {ranks} heard: good morning from rank {(rank - 1) % ranks}" for rank in range(ranks)]
        self.assertEqual((status, sorted(output.splitlines()), error), (0, heard, ""))

    def start_rounds(self, hosts, launcher, ranks, *words, **options):
        """A job in the middle of rounds; answers it, its lines and the process ids of its ranks."""
        job = self.start(hosts, launcher, "-n", str(ranks), *(words or [MESSAGES, "rounds"]), **options)
        output = Lines(job.stdout)
        pids = [int(output.wait_for(rf"^{rank} is (\d+)").group(1)) for rank in range(ranks)]
        for rank in range(ranks):
            output.wait_for(rf"^rank {rank} is ready")
        return job, output, pids

    def check_survivors(self, output, victims, survivors, since, bound):
        """All of them know within the bound, and go on."""
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
    def test_hello(self):
        hosts = self.make_hosts(4)
        for launcher in (openmpi4(), openmpi5()):
            self.check_hello(hosts, [*launcher, "--map-by", "node"], 4)
            self.check_hello(hosts, launcher, 8)

    def test_on_two_hosts(self):
        hosts = self.make_hosts(2)
        self.check_done(hosts, openmpi4(), 4, "exchange")
        self.check_done(hosts, openmpi5(), 4, "announced")
        for seed in ("1", "2"):
            self.check_done(hosts, openmpi5(), 4, "traffic", seed)

    def test_on_four_hosts(self):
        hosts = self.make_hosts(4)
        self.check_done(hosts, openmpi4("--host", "h0,h1,h2,h3"), 4, "collectives")
        self.check_done(hosts, openmpi5(), 8, "traffic", "3")

    # Neighbours in rank are on different hosts then.
    def test_with_ranks_dealt_out_in_turn(self):
        hosts = self.make_hosts(2)
        self.check_done(hosts, openmpi4("--map-by", "node"), 4, "collectives")
        self.check_done(hosts, openmpi5("--map-by", "node"), 4, "traffic", "5")

    # Each host is sent what it needs of the others once, however many ranks it has: of a broadcast and an all-reduce of 1
    # MiB the whole, of an all-gather the other half.
    def test_collectives_cross_the_link_once(self):
        hosts = self.make_hosts(2)
        times = 32
        for mapping in ("slot", "node"):
            for what, share in (("broadcast", 1.0), ("all_reduce", 1.0), ("all_gather", 0.5)):
                if (what, mapping) == ("all_reduce", "node"):
                    continue  # the order of operands goes before
                before = hosts.traffic(1).received + hosts.traffic(0).received
                self.check_done(hosts, openmpi4("--map-by", mapping), 4, what, times)
                crossed = (hosts.traffic(1).received + hosts.traffic(0).received - before) / times / 2**20
                least = 1.0 if what == "broadcast" else 2.0 * share
                self.assertTrue(least <= crossed < 1.2 * least, f"{what}: {crossed:.2f} MiB by {mapping}")

    def test_with_other_settings(self):
        hosts = self.make_hosts(2)
        for setting in ("TONARI_SERVICE_THREAD=off", "TONARI_DIRECT_COPIES=off"):
            self.check_done(hosts, openmpi4("-x", setting), 4, "traffic", "6")

    def test_by_tonari_run(self):
        hosts = self.make_hosts(2)
        for launcher in (launchers.openmpi4(), launchers.openmpi5()):
            path = f"{os.path.dirname(launcher[0])}:{os.environ['PATH']}".lstrip(":")
            env = {**os.environ, **launchers.environment(hosts), "PATH": path}
            self.check_done(hosts, [TONARI, "run", "--hosts", "2"], 4, "traffic", "7", env=env)

    def test_with_the_ports_that_a_firewall_lets_through(self):
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

    def test_with_too_few_ports(self):
        hosts = self.make_hosts(1)
        words = ["-x", "TONARI_APART=network", "-n", "2", HELLO]
        _, _, error = self.run_to_end(hosts, openmpi4("-x", "UCX_TCP_PORT_RANGE=20000-20000"), *words)
        self.assertIn("Device is busy; see ulimit -n and, where UCX_TCP_PORT_RANGE is set, whether it has free ports", error)

    def listened_at(self, hosts, host):
        """The TCP ports of a host at which somebody listens."""
        rows = [line.split() for line in hosts.run(host, "cat", "/proc/net/tcp").stdout.splitlines()[1:]]
        return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"]

    def test_over_a_link_that_loses(self):
        hosts = self.make_hosts(2)
        for host in (0, 1):
            hosts.lose(host, 0.02)
        self.check_done(hosts, openmpi4(), 4, "traffic", "8")

    def test_over_a_slow_link(self):
        hosts = self.make_hosts(2)
        for host in (0, 1):
            hosts.limit(host, SLOW)
        for words in (("announced",), ("traffic", "10"), ("broadcast", "16")):
            self.check_done(hosts, openmpi4(), 4, *words)

    def test_a_rank_that_leaves_early(self):
        hosts = self.make_hosts(2)
        for launcher in (openmpi4(), openmpi5()):
            self.check_done(hosts, launcher, 4, "leave")


class Deaths(MessagesTest):
    def test_of_one_rank_in_the_middle_of_rounds(self):
        hosts = self.make_hosts(2)
        launcher = openmpi5("--enable-recovery")
        job, output, pids = self.start_rounds(hosts, launcher, 4, MESSAGES, "rounds", "3")
        os.kill(pids[3], signal.SIGKILL)
        self.check_survivors(output, {3: "h1"}, (0, 1, 2), time.monotonic(), DEATH_BOUND)
        job.wait(PATIENCE)

    def test_of_one_that_a_rank_has_never_sent_to(self):
        hosts = self.make_hosts(2)
        job, output, pids = self.start_rounds(hosts, openmpi5("--enable-recovery"), 4, MESSAGES, "quiet")
        os.kill(pids[3], signal.SIGKILL)
        self.check_survivors(output, {3: "h1"}, (0, 1, 2), time.monotonic(), DEATH_BOUND)
        job.wait(PATIENCE)

    def test_of_all_ranks_of_a_host(self):
        hosts = self.make_hosts(2)
        launcher = openmpi5("--enable-recovery")
        job, output, pids = self.start_rounds(hosts, launcher, 4, MESSAGES, "rounds", "2", "3")
        for pid in pids[2:]:
            os.kill(pid, signal.SIGKILL)
        self.check_survivors(output, {2: "h1", 3: "h1"}, (0, 1), time.monotonic(), DEATH_BOUND)
        job.wait(PATIENCE)

    # Ranks 0 to 2 are each on a host of its own.
    def test_in_the_middle_of_something(self):
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

    def test_without_a_handler_ends_the_job(self):
        hosts = self.make_hosts(2)
        job, _, pids = self.start_rounds(hosts, openmpi5("--enable-recovery"), 4)
        os.kill(pids[3], signal.SIGKILL)
        job.wait(PATIENCE)
        error = job.stderr.read()
        # The first to know stops; others may know only of that one's end.
        how = r"(has gone( \(.+\))?|was killed by signal 9 \(Killed\))"
        self.assertRegex(error, rf"(?m)^tonari: rank \d stops because rank 3 \(host h1\) {how}$")
        self.assertNotEqual(job.returncode, 0)


class Silence(MessagesTest):
    """A host from which nothing comes any more, not even word of its end."""

    # Each half takes the other for dead, and goes on alone.
    def test_of_a_link_that_is_cut(self):
        hosts = self.make_hosts(2)
        told = f'[ $PMIX_RANK -lt 2 ] && exec {MESSAGES} rounds 2 3; exec {MESSAGES} rounds 0 1'
        launcher = openmpi5("--enable-recovery", *IMPATIENT)
        job, output, _ = self.start_rounds(hosts, launcher, 4, "sh", "-c", told)
        hosts.cut(0, 1)
        since = time.monotonic()
        self.check_survivors(output, {2: "h1", 3: "h1"}, (0, 1), since, IMPATIENT_BOUND)
        hosts.heal(0, 1)  # so that the launcher hears of the other half
        for survivor in (2, 3):  # when, only they know
            output.wait_for(rf"^rank {survivor} did it")
        job.wait(PATIENCE)

    # Nothing is under way, so that the kernel asks by itself.
    def test_of_a_link_that_is_cut_while_all_wait(self):
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

    # Whoever made the connection: UCX has the kernel ask only on that side.
    def test_of_either_host(self):
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

    # Its daemon lives, unlike under Hosts.crash(): the launcher would end the job when it has lost one.
    def test_of_all_ranks_of_a_host_that_nobody_reaches(self):
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
    """The ranks live, and the network does not lead from one to the other."""

    def check(self, hosts, launcher, setting=":"):
        words = ["--host", "h0,h1", "-n", "2", "sh", "-c", f"{setting}; exec {MESSAGES} exchange"]
        status, _, error = self.run_to_end(hosts, launcher, *words)
        self.assertNotEqual(status, 0)
        told = r"(?m)^tonari\[\d\]: rank (\d) \(host h\1\) cannot be reached \([\w ]+\) and counts as dead: .*" \
               r"TONARI_UCX_NET_DEVICES chooses them"
        self.assertRegex(error, told)
        self.assertNotIn("has gone", error)

    def test_by_devices_that_are_not_there_or_lead_nowhere(self):
        hosts = self.make_hosts(2)
        for device in ("eth7", "lo"):
            with self.subTest(device):
                self.check(hosts, openmpi4("-x", f"TONARI_UCX_NET_DEVICES={device}"))

    def test_by_another_device_of_one_rank(self):
        self.check(self.make_hosts(2), openmpi5(), "[ $PMIX_RANK = 1 ] && export TONARI_UCX_NET_DEVICES=lo")

    def test_by_a_firewall(self):
        hosts = self.make_hosts(2)
        rules = ("table inet wall { chain in { type filter hook input priority 0; tcp dport 20000-20999 drop; }; "
                 "chain out { type filter hook output priority 0; tcp dport 20000-20999 drop; }; }")
        self.assertEqual(hosts.run(1, "nft", rules).returncode, 0)
        self.check(hosts, openmpi4("-x", "UCX_TCP_PORT_RANGE=20000-20999", *IMPATIENT))


class Ends(MessagesTest):
    def test_by_a_signal_to_the_launcher(self):
        hosts = self.make_hosts(2)
        for launcher in (openmpi4(), openmpi5()):
            job, _, _ = self.start_rounds(hosts, launcher, 4)
            job.send_signal(signal.SIGINT)
            job.wait(PATIENCE)
            self.assertNotEqual(job.returncode, 0)


class BySlurm(OnSlurm, MessagesTest):
    SRUN = ["srun", "-Q", "-N", "2", "--mpi=pmix"]

    def test_traffic(self):
        self.check_hello(self.hosts, self.SRUN, 4, env=self.slurm.environment)
        for words in (["announced"], ["collectives"], ["traffic", "9"]):
            self.check_done(self.hosts, self.SRUN, 4, *words, env=self.slurm.environment)

    def test_the_death_of_a_rank(self):
        words = [MESSAGES, "rounds", "3"]
        job, output, pids = self.start_rounds(self.hosts, self.SRUN, 4, *words, env=self.slurm.environment)
        os.kill(pids[3], signal.SIGKILL)
        self.check_survivors(output, {3: "h1"}, (0, 1, 2), time.monotonic(), DEATH_BOUND)
        job.wait(PATIENCE)

    def test_scancel(self):
        job, _, _ = self.start_rounds(self.hosts, self.SRUN, 4, env=self.slurm.environment)
        self.slurm.run("scancel", *self.slurm.jobs())
        job.wait(PATIENCE)
        self.assertNotEqual(job.returncode, 0)


if __name__ == "__main__":
    main()
