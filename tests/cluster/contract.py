"""The suite of every transport, tests/contract, between ranks of two hosts."""

import os
import platform

from bed import launchers
from bed.case import LauncherTest
from bed.world import main
from harness.jobs import PROGRAMS

CONTRACT = os.path.join(PROGRAMS, "contract")


class ContractTest(LauncherTest):
    # Each call of a wire is a message from rank 0 and one back, so that all takes about twenty times as long.
    SETTINGS = ["-x", "TONARI_TEST_SLOWNESS=20"]

    def check_contract(self, hosts, processors, *options, program=CONTRACT):
        """Neighbours in rank are on different hosts, whose processors are these."""
        launcher = launchers.unbound(launchers.openmpi5(), "--map-by", "node", *self.SETTINGS)
        status, output, error = self.run_to_end(hosts, launcher, "-n", "4", program, "--gtest_color=no", *options)
        self.assertEqual((status, error), (0, ""), output)
        for rank in range(4):
            self.assertIn(f"rank {rank} is {processors[rank % 2]}\n", output)
        self.assertRegex(output, r"\[  PASSED  \] [1-9]\d* tests")
        self.assertNotIn("SKIPPED", output)


class Contract(ContractTest):
    PROCESSORS = [platform.machine()] * 2

    def test_the_transport_contract_holds_between_two_hosts(self):
        self.check_contract(self.make_hosts(2), self.PROCESSORS)

    def test_the_transport_contract_holds_over_a_link_that_loses_packets(self):
        hosts = self.make_hosts(2)
        for host in (0, 1):
            hosts.lose(host, 0.005)
        self.check_contract(hosts, self.PROCESSORS)


if __name__ == "__main__":
    main()
