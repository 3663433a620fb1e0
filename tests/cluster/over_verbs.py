"""All that spans hosts, over RDMA verbs: by connections (rc) and by datagrams (ud), also where packets are lost.

In a virtual machine with two Soft-RoCE devices, whose ports are joined by a cable. Ranks that are threads of one
program share a device; packets between ranks of different devices can be lost.
"""

import os
import sys

from bed import FOLDER, PROJECT, vm
from bed.case import ClusterTest
from bed.world import main
from harness.jobs import BIN, PROGRAMS, TONARI

SUITES = os.path.dirname(PROGRAMS)
# Emulated, the machine and its devices are about so much slower.
SETTINGS = "export TONARI_TEST_SLOWNESS=20 TONARI_TEST_DEVICES=rxe0:1,rxe1:1"
LOSSES = "for port in eth0 eth1; do tc qdisc add dev $port root netem loss 1%; done"
PACKETS = "cat /sys/class/infiniband/rxe?/ports/1/hw_counters/sent_pkts /sys/class/net/eth?/statistics/tx_packets"
LOST = "tc -s qdisc show | grep -o 'dropped [0-9]*'"

CONTRACT = "'*/TransportContract/OrderedOverUcx.*' 'Ucx.*'"
# Deaths that no launcher tells of take UCX half a minute.
CONTRACT_WITH_LOSSES = "'*/TransportContract/OrderedOverUcx.*' 'Ucx.EachHeadWakes*' 'Ucx.HeadsAccepted*'"
WINDOWS = "'*/Window*.*/Network*'"
MESSAGES = "'On/Message.*/Network'"
# On the kernel of the machine, which is older than Linux 6.4.
SHARED = ("'*/SharedArrays.ShowWritesMadeBefore*/ApartNetwork' '*/SharedArrays.LetRanks*/ApartNetwork' "
          "'*/Guarded.MovesSpans*/Network*Gets' '*/Guarded.MovesSpans*/NetworkUpdateOwnerPuts'")


def suite(name, tests):
    """Runs the tests that match each pattern; each must match at least one."""
    program = os.path.join(SUITES, name)
    return f"""
for tests in {tests}; do
  {program} --gtest_brief=1 --gtest_filter="$tests" >/tmp/ran 2>&1 || {{ cat /tmp/ran; exit 1; }}
  if grep -q "] 0 tests" /tmp/ran; then echo "{name} has no tests $tests"; exit 1; fi
done"""


def job(network, *words):
    """Two ranks, each with a device of its own."""
    program = " ".join([os.path.join(PROGRAMS, words[0]), *words[1:]])
    with_device = f"TONARI_UCX_NET_DEVICES=rxe$TONARI_RANK:1 exec {program}"
    return f"{TONARI} run -n 2 --apart network --network {network} sh -c '{with_device}' 2>&1"


class OverVerbs(ClusterTest):
    def check(self, network, *commands):
        """Runs the commands one after the other, which must all succeed. Returns the lines of their output."""
        lines = ["set -e", f"cd {PROJECT}", SETTINGS, f"export TONARI_TEST_NETWORK={network}", *commands, PACKETS]
        done = vm.run("sh", "-c", "\n".join(lines), timeout=1200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        *said, device0, device1, port0, port1 = done.stdout.splitlines()
        self.assertGreater(int(device0) + int(device1), 1000, "the devices sent nothing")
        return said, int(port0) + int(port1)

    def check_suites(self, network):
        self.check(network, suite("contract", CONTRACT), suite("unit", MESSAGES), suite("unit", WINDOWS),
                   suite("unit", SHARED))

    def check_with_losses(self, network):
        programs = [job(network, *words) for words in (("messages", "traffic", "1"), ("windows", "copies", "1"),
                                                       ("windows", "locks"), ("windows", "words"))]
        said, sent = self.check(network, LOSSES, suite("contract", CONTRACT_WITH_LOSSES), *programs, LOST)
        lost = sum(int(line.split()[1]) for line in said if line.startswith("dropped "))
        self.assertGreater(lost, sent / 300)

    def test_contract_messages_windows_and_shared_arrays_work_over_connections(self):
        self.check_suites("rc")

    # Without a service thread, rank 0's card alone serves the other ranks, by keys that rank 0 gives and takes back.
    def test_windows_are_accessed_by_key_over_connections(self):
        alone = "export TONARI_SERVICE_THREAD=off"
        served = [job("rc", "windows", word) for word in ("freed", "crowd")]
        self.check("rc", *served, alone, job("rc", "windows", "by_key"))

    def test_contract_messages_windows_and_shared_arrays_work_over_datagrams(self):
        self.check_suites("ud")

    # vm/far_memory.py looks at the devices' counters itself.
    def test_far_memory_works_over_connections_and_datagrams(self):
        variables = {"TONARI_BIN": BIN, "TONARI_TEST_BIN": PROGRAMS, "PYTHONPATH": PROJECT / "tests" / "system"}
        words = [f"{name}={value}" for name, value in variables.items()]
        done = vm.run("env", *words, sys.executable, FOLDER / "vm" / "far_memory.py", "-v", newer=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"\nRan 5 tests in .*\n\nOK\n$", "no test was skipped")

    def test_contract_messages_and_windows_work_over_connections_that_lose_packets(self):
        self.check_with_losses("rc")

    def test_contract_messages_and_windows_work_over_datagrams_that_are_lost(self):
        self.check_with_losses("ud")


if __name__ == "__main__":
    main()
