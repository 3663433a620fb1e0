"""Hosts made of namespaces, on a bridge in the network of the world that the test has entered.

    h0          h1          h2         each: network, host name, System V objects, boot id, /tmp, /run and /dev/shm
    eth0        eth0        eth0       10.99.0.1, 10.99.0.2, ...
     |           |           |         cables: unplug, delay, limit, traffic
    h0 --------- h1 -------- h2        ports of the bridge, named after the hosts: cut, lose

They share one table of processes, the files of the machine, and /srv. Every host is kept by a process that sleeps.
Its id stands in /srv/hosts/NAME: `tests/cluster/on` enters a host by it.
"""

import collections
import os
import signal
import subprocess
import uuid

from bed import FOLDER, PROJECT
from bed.world import SHARED, Missing, need
from harness.jobs import eventually, state_of

ON = str(FOLDER / "on")
KEEPERS = os.path.join(SHARED, "hosts")
NAMES = os.path.join(SHARED, "names")
PORT = "eth0"

# Bits per second of a slow link: a hundredth of the speed of this one without a limit.
SLOW = 100_000_000

# Results of state_of() for a dead process: its parent has not waited for it yet, or it is gone.
DEAD = ("Z", "X", None)

# Gives each host its own mounts, and all hosts one table of hosts. The project stays visible if it is in /tmp.
SETUP = f"""
hostname "$NAME"
mount -t tmpfs run /run
mount -t tmpfs shm /dev/shm
mkdir /run/cgroup /run/project
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sys /sys
mount --move /run/cgroup /sys/fs/cgroup
echo "$BOOT" >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
mount --bind {NAMES} /etc/hosts
mount --bind "$PROJECT" /run/project
mount -t tmpfs -o mode=1777 tmp /tmp
if [ ! -d "$PROJECT" ]; then
  mkdir -p "$PROJECT"
  mount --move /run/project "$PROJECT"
fi
ip link set lo up
echo up
exec sleep infinity >/dev/null
"""

Traffic = collections.namedtuple("Traffic", "sent received")


def tell(*command, text=None):
    """Runs a command that sets something up. The exception contains the command's error output."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Hosts:
    """So many hosts, numbered from 0. There is one such object at a time in a world."""

    def __init__(self, count):
        self.count = count
        self._keepers = []
        self._cuts = set()
        self._losses = {}
        self._bridged = False

        os.makedirs(KEEPERS, exist_ok=True)
        with open(NAMES, "w") as file:
            file.write("127.0.0.1 localhost\n")
            file.writelines(f"{self.address(host)} {self.name(host)}\n" for host in range(count))
        try:
            self._make_bridge()
            for host in range(count):
                self._make(host)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def name(self, host):
        return f"h{host}"

    def address(self, host):
        return f"10.99.0.{host + 1}"

    # Processes on a host.

    def command(self, host, *words):
        """The command that runs these words on a host."""
        enter = ["nsenter", f"--target={self._keepers[host].pid}", "--net", "--uts", "--ipc", "--mount"]
        return [*enter, "sh", "-c", 'cd "$0" 2>/dev/null || cd /; exec "$@"', os.getcwd(), *map(str, words)]

    def start(self, host, *words, **options):
        """Starts a command on a host; its process is the command's own."""
        options = {"stdin": subprocess.DEVNULL, "text": True, **options}
        return subprocess.Popen(self.command(host, *words), **options)

    def run(self, host, *words, timeout=60, **options):
        """Runs a command on a host to its end."""
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": timeout, **options}
        return subprocess.run(self.command(host, *words), **options)

    def processes(self, host):
        """The processes that are alive on a host."""
        keeper = self._keepers[host].pid
        network = os.readlink(f"/proc/{keeper}/ns/net")
        found = [pid for pid in _processes() if pid != keeper and _network_of(pid) == network]
        return [pid for pid in found if state_of(pid) not in DEAD]

    def kill(self, host):
        """Ends all processes of a host; the host stays, as after a restart."""
        eventually(lambda: not [_kill(pid) for pid in self.processes(host)], f"{self.name(host)} is empty")

    def crash(self, host):
        """Ends the host's processes without a word over the network, as a power failure does."""
        self.unplug(host)
        self.kill(host)

    def file(self, host, path):
        """Where a file of a host is to be found from here."""
        return f"/proc/{self._keepers[host].pid}/root{path}"

    # The network.

    def unplug(self, host):
        tell("ip", "link", "set", self.name(host), "down")

    def plug(self, host):
        tell("ip", "link", "set", self.name(host), "up")

    def cut(self, one, other):
        """Nothing passes between two hosts from now on; their kernels notice only by the silence."""
        self._cuts.add(frozenset((one, other)))
        self._filter()

    def heal(self, one, other):
        self._cuts.discard(frozenset((one, other)))
        self._filter()

    def lose(self, host, share):
        """Drops this share, from 0 to 1, of the packets that a host sends, at random. TCP repeats them soon."""
        # By default it repeats after 200 ms, and a test with many losses would do little but wait.
        tell(*self._in(host), "ip", "route", "change", "10.99.0.0/24", "dev", PORT, "src", self.address(host),
             "proto", "kernel", "scope", "link", "rto_min", "10ms")
        self._losses[host] = share
        self._filter()

    def delay(self, host, milliseconds):
        """Delays all that a host sends by so many milliseconds; None removes the delay."""
        self._queue(self._in(host), PORT, milliseconds and ["netem", "delay", f"{milliseconds}ms"])

    def limit(self, host, bits_per_second):
        """Limits the rate at which a host receives; None removes the limit."""
        limits = ["tbf", "rate", f"{bits_per_second}bit", "burst", "64kb", "latency", "50ms"]
        self._queue([], self.name(host), bits_per_second and limits)

    def traffic(self, host):
        """The bytes that have crossed a host's cable."""
        with open("/proc/net/dev") as file:
            counts = next(line.split(":")[1].split() for line in file if line.strip().startswith(f"{self.name(host)}:"))
        return Traffic(sent=int(counts[0]), received=int(counts[8]))

    def close(self):
        for host, keeper in enumerate(self._keepers):
            if keeper.poll() is None:
                self.kill(host)
                keeper.kill()
                keeper.wait()
            keeper.stdout.close()
        self._keepers = []
        if self._cuts or self._losses:
            self._cuts.clear()
            self._losses.clear()
            self._filter()  # or the next hosts, of the same names, would have them too
        if self._bridged:
            self._bridged = False
            for host in range(self.count):
                subprocess.run(["ip", "link", "del", self.name(host)], stderr=subprocess.DEVNULL)
            tell("ip", "link", "del", "switch")

    def _make_bridge(self):
        _add_link("bridge", "switch", "forward_delay", "0", "mcast_snooping", "0")
        self._bridged = True
        _without_ipv6([], "switch")
        tell("ip", "link", "set", "switch", "up")

    def _make(self, host):
        name = self.name(host)
        variables = {"NAME": name, "BOOT": str(uuid.uuid4()), "PROJECT": str(PROJECT)}
        keeper = subprocess.Popen(["unshare", "--net", "--uts", "--ipc", "--mount", "sh", "-ec", SETUP], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, **variables})
        self._keepers.append(keeper)
        if keeper.stdout.readline() != "up\n":
            raise RuntimeError(f"{name} did not come up: status {keeper.wait()}")
        with open(os.path.join(KEEPERS, name), "w") as file:
            file.write(f"{keeper.pid}\n")

        _add_link("veth", name, "peer", "name", PORT, "netns", str(keeper.pid))
        _without_ipv6([], name)
        _without_ipv6(self._in(host), PORT)
        tell("ip", "link", "set", name, "master", "switch", "up")
        tell(*self._in(host), "ip", "addr", "add", f"{self.address(host)}/24", "dev", PORT)
        tell(*self._in(host), "ip", "link", "set", PORT, "up")

    def _in(self, host):
        return ["nsenter", f"--target={self._keepers[host].pid}", "--net", "--mount"]

    def _filter(self):
        rules = []
        for one, other in map(sorted, self._cuts):
            rules += [f"iifname {self.name(a)} oifname {self.name(b)} drop" for a, b in ((one, other), (other, one))]
        for host, share in self._losses.items():
            rules.append(f"iifname {self.name(host)} numgen random mod 10000 < {round(share * 10000)} drop")
        need("nft")
        chain = "\n".join(["type filter hook forward priority 0", *rules])
        table = "table bridge cables"
        tell("nft", "-f", "-", text=f"{table} {{\n}}\ndelete {table}\n{table} {{\nchain forward {{\n{chain}\n}}\n}}\n")

    def _queue(self, where, port, discipline):
        discipline = discipline or ["noqueue"]
        try:
            tell(*where, "tc", "qdisc", "replace", "dev", port, "root", *discipline)
        except RuntimeError as error:
            if "kind is unknown" in str(error):
                raise Missing(f"needs the kernel module sch_{discipline[0]}") from error
            raise


def _add_link(kind, name, *options):
    try:
        tell("ip", "link", "add", name, "type", kind, *options)
    except RuntimeError as error:
        raise Missing(f"needs the kernel module {kind}: {error}") from error


def _without_ipv6(where, port):
    """Switches IPv6 off, so that its neighbour discovery adds no packets: only packets of programs cross the cables."""
    setting = f"/proc/sys/net/ipv6/conf/{port}/disable_ipv6"
    tell(*where, "sh", "-c", f"[ ! -e {setting} ] || echo 1 >{setting}")


def _processes():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _network_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
