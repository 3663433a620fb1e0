"""The virtual machine has a verbs device that UCX uses, and what this machine's kernel may lack."""

import sys

from bed import FOLDER, vm
from bed.case import ClusterTest
from bed.world import main

# Short messages between two processes over one transport; then how many packets the device has sent by now.
PING_PONG = """
export UCX_NET_DEVICES=rxe0:1
for transports in rc_verbs,ud_verbs:aux ud_verbs; do
  UCX_TLS=$transports ucx_perftest -t tag_lat -s 8 -w 10 -n 200 >/dev/null &
  sleep 2
  UCX_TLS=$transports ucx_perftest localhost -t tag_lat -s 8 -w 10 -n 200 >/dev/null || exit
  wait $! || exit
  cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts
done
"""


class Verbs(ClusterTest):
    def test_the_virtual_machine_returns_output_and_status_of_a_command(self):
        done = vm.run("sh", "-c", "hostname; echo no >&2; exit 3")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("vm\n", "no\n", 3))

    def test_the_verbs_device_carries_messages_over_connections_and_datagrams(self):
        done = vm.run("sh", "-c", PING_PONG)
        self.assertEqual(done.returncode, 0, done.stderr)
        connected, both = map(int, done.stdout.split())
        self.assertGreater(connected, 400)
        self.assertGreater(both, connected + 400)

    def test_hosts_in_the_virtual_machine_have_links_that_delay_packets(self):
        done = vm.run(sys.executable, FOLDER / "bed_hosts.py", "Network.test_a_link_delays_packets_by_the_chosen_time")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
