"""The bed itself: hosts are apart, their network does as it is told, and nothing of them is left behind."""

import os
import signal
import subprocess
import sys
import time
import uuid

from bed import FOLDER, PROJECT
from bed.case import ClusterTest
from bed.hosts import ON
from bed.world import SHARED, main, need
from harness.jobs import MARK, PATIENCE, eventually, processes_marked

SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], 7000)) as peer:
    peer.sendall(bytes(int(sys.argv[2])))
"""

RECEIVE = """
import socket
with socket.create_server(("", 7000)) as server:
    print("listens", flush=True)
    peer, _ = server.accept()
    count = 0
    while read := len(peer.recv(1 << 16)):
        count += read
    print(count)
"""


class World(ClusterTest):
    def start_hosts(self, mark, *command):
        job = subprocess.Popen([FOLDER / "hosts", "2", "--", *command], env={**os.environ, MARK: mark}, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def outside(self):
        with open("/proc/self/mounts") as mounts, open("/proc/net/dev") as devices:
            return mounts.read(), [line.split(":")[0] for line in devices], os.listdir(SHARED)

    def test_a_world_leaves_nothing_behind_whatever_signal_ends_it(self):
        before = self.outside()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number.name):
                mark = uuid.uuid4().hex
                elsewhere = f"{MARK}={mark} sleep 1000 & echo up; wait"
                job = self.start_hosts(mark, "sh", "-c", f"setsid sleep 1000 & on h1 '{elsewhere}'")
                self.assertEqual(job.stdout.readline(), "up\n")
                self.assertGreaterEqual(len(processes_marked(mark)), 5)

                job.send_signal(number)

                self.assertEqual(job.wait(PATIENCE), -number)
                eventually(lambda: not processes_marked(mark), "all processes are gone")
                self.assertEqual(self.outside(), before)

    def test_a_world_leaves_nothing_behind_when_its_command_ends(self):
        before = self.outside()
        mark = uuid.uuid4().hex
        files = [f"{folder}/{mark}" for folder in ("/tmp", "/run", "/dev/shm", SHARED)]

        job = self.start_hosts(mark, "sh", "-c", 'setsid sleep 1000 & touch "$@" && exit 7', "", *files)

        self.assertEqual(job.wait(PATIENCE), 7)
        self.assertFalse(any(map(os.path.exists, files)))
        eventually(lambda: not processes_marked(mark), "all processes are gone")
        self.assertEqual(self.outside(), before)

    def test_two_worlds_can_exist_at_a_time(self):
        jobs = [self.start_hosts(uuid.uuid4().hex, "sh", "-c", "echo up; sleep 1000") for _ in range(2)]
        for job in jobs:
            self.assertEqual(job.stdout.readline(), "up\n")


class Host(ClusterTest):
    def test_hosts_have_separate_names_namespaces_and_folders(self):
        hosts = self.make_hosts(3)
        self.assertEqual([hosts.run(host, "hostname").stdout for host in range(3)], ["h0\n", "h1\n", "h2\n"])
        spaces = [f"readlink /proc/self/ns/{kind}" for kind in ("net", "ipc", "uts")]
        for question in ("cat /proc/sys/kernel/random/boot_id", *spaces):
            with self.subTest(question):
                self.assertEqual(len({hosts.run(host, *question.split()).stdout for host in range(3)}), 3)
        for folder in ("/tmp", "/run", "/dev/shm"):
            with self.subTest(folder=folder):
                self.assertEqual(hosts.run(0, "touch", f"{folder}/mine").returncode, 0)
                self.assertNotEqual(hosts.run(1, "ls", f"{folder}/mine").returncode, 0)
                self.assertTrue(os.path.exists(hosts.file(0, f"{folder}/mine")))

    def test_hosts_share_the_project_and_one_folder(self):
        hosts = self.make_hosts(2)
        self.assertEqual(hosts.run(0, "touch", f"{SHARED}/ours").returncode, 0)
        self.assertEqual(hosts.run(1, "ls", f"{SHARED}/ours", PROJECT / "tests").returncode, 0)

    def test_a_host_runs_commands_on_another_as_by_ssh(self):
        hosts = self.make_hosts(2)
        done = hosts.run(0, ON, "-x", "h1", "hostname; exit 3", env={**os.environ, "SECRET": "1"})
        self.assertEqual((done.stdout, done.returncode), ("h1\n", 3))
        self.assertNotIn("SECRET", hosts.run(0, ON, "h1", "env", env={**os.environ, "SECRET": "1"}).stdout)

    def test_killing_a_host_ends_its_processes_and_no_others(self):
        hosts = self.make_hosts(2)
        jobs = [hosts.start(host, "sh", "-c", "setsid sleep 1000 & sleep 1000") for host in (0, 1)]
        for host in (0, 1):
            eventually(lambda: len(hosts.processes(host)) == 3, "all run")

        hosts.kill(1)

        self.assertEqual(hosts.processes(1), [])
        self.assertEqual(jobs[1].wait(PATIENCE), -signal.SIGKILL)
        self.assertEqual(len(hosts.processes(0)), 3)
        self.assertEqual(hosts.run(1, "hostname").stdout, "h1\n")
        hosts.kill(0)
        jobs[0].wait(PATIENCE)


class Network(ClusterTest):
    def setUp(self):
        need("ping")

    def ping(self, hosts, source, target, *options):
        return hosts.run(source, "ping", "-q", "-n", *(options or ("-c1", "-W1")), hosts.name(target))

    def reaches(self, hosts, source, target):
        return self.ping(hosts, source, target).returncode == 0

    def round_trip_ms(self, hosts):
        return float(self.ping(hosts, 0, 1, "-c3", "-i0.1").stdout.split("= ")[1].split("/")[0])

    def transfer(self, hosts, source, target, size):
        """Sends so many bytes; returns the seconds that it took."""
        with hosts.start(target, sys.executable, "-c", RECEIVE, stdout=subprocess.PIPE) as receiver:
            self.assertEqual(receiver.stdout.readline(), "listens\n")
            start = time.monotonic()
            sent = hosts.run(source, sys.executable, "-c", SEND, hosts.address(target), size)
            self.assertEqual(sent.returncode, 0, sent.stderr)
            self.assertEqual(receiver.stdout.readline(), f"{size}\n")
            return time.monotonic() - start

    def test_the_network_connects_all_hosts(self):
        hosts = self.make_hosts(4)
        for source in range(4):
            for target in range(4):
                self.assertTrue(self.reaches(hosts, source, target), (source, target))

    def test_the_network_can_be_cut_between_two_hosts_only_and_heals(self):
        hosts = self.make_hosts(3)

        hosts.cut(0, 1)

        self.assertFalse(self.reaches(hosts, 0, 1))
        self.assertFalse(self.reaches(hosts, 1, 0))
        self.assertTrue(self.reaches(hosts, 0, 2))
        self.assertTrue(self.reaches(hosts, 2, 1))
        hosts.heal(0, 1)
        eventually(lambda: self.reaches(hosts, 0, 1), "they meet again")

    def test_an_unplugged_host_is_unreachable_until_it_is_plugged_in(self):
        hosts = self.make_hosts(3)

        hosts.unplug(1)

        self.assertFalse(self.reaches(hosts, 0, 1))
        self.assertTrue(self.reaches(hosts, 0, 2))
        hosts.plug(1)
        eventually(lambda: self.reaches(hosts, 0, 1), "the host is back")

    def test_a_link_loses_the_chosen_share_of_packets(self):
        hosts = self.make_hosts(2)
        # A lost question for the other's address would lose every ping of a second.
        self.assertTrue(self.reaches(hosts, 0, 1))

        hosts.lose(0, 0.3)

        report = self.ping(hosts, 0, 1, "-c300", "-i0.002", "-W1").stdout
        received = int(report.split(" received")[0].split()[-1])
        self.assertTrue(150 < received < 270, report)
        hosts.lose(0, 0)
        self.assertIn(" 0% packet loss", self.ping(hosts, 0, 1, "-c100", "-i0.002").stdout)

    def test_a_link_delays_packets_by_the_chosen_time(self):
        hosts = self.make_hosts(2)
        hosts.delay(0, 100)
        self.assertGreaterEqual(self.round_trip_ms(hosts), 100)
        hosts.delay(0, None)
        self.assertLess(self.round_trip_ms(hosts), 100)

    def test_a_link_limits_its_rate_to_the_chosen_one(self):
        hosts = self.make_hosts(2)
        hosts.limit(1, 16_000_000)
        self.assertGreater(self.transfer(hosts, 0, 1, 1_000_000), 0.4)
        hosts.limit(1, None)
        self.assertLess(self.transfer(hosts, 0, 1, 20_000_000), 10)

    def test_traffic_is_counted_per_cable(self):
        hosts = self.make_hosts(3)
        before = [hosts.traffic(host) for host in range(3)]

        self.transfer(hosts, 0, 1, 1_000_000)

        sent, received = zip(*((now.sent - then.sent, now.received - then.received)
                               for now, then in zip(map(hosts.traffic, range(3)), before)))
        for crossed in (sent[0], received[1]):
            self.assertTrue(1_000_000 < crossed < 1_100_000, crossed)
        self.assertLess(sent[2] + received[2], 10_000)


if __name__ == "__main__":
    main()
