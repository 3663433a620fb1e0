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
    def test_returns_the_output_and_the_status_of_the_command(self):
        done = vm.run("sh", "-c", "hostname; echo no >&2; exit 3")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("vm\n", "no\n", 3))

    def test_carry_messages_over_connections_and_datagrams(self):
        done = vm.run("sh", "-c", PING_PONG)
        self.assertEqual(done.returncode, 0, done.stderr)
        connected, both = map(int, done.stdout.split())
        self.assertGreater(connected, 400)
        self.assertGreater(both, connected + 400)

    def test_has_hosts_whose_cables_delay(self):
        done = vm.run(sys.executable, FOLDER / "bed_hosts.py", "Network.test_delays")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
