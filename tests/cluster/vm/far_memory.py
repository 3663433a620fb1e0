"""Far memory whose server is reached over Soft-RoCE. over_verbs.py runs these tests in the virtual machine.

The servers' job has a network between all of its ranks, so nothing is mapped. Each test checks by the devices' counters
that pages crossed the network as they should: over connections by put and get, over datagrams as messages.
"""

import json
import os
import pathlib
import signal
import tempfile
import unittest

from harness.far import TORTURE, FarTest, need_faults
from harness.far_bench import FarBenchTest

PAGE = 4096
COUNTERS = pathlib.Path("/sys/class/infiniband")


def statistics_in(error):
    """Returns the statistics. Before and after them, there may be messages of UCX and about servers."""
    return json.loads(next(line for line in error.splitlines() if line.startswith("{")))


def sent(counter):
    """Returns how many of these the devices have sent: sent_pkts, or rdma_sends, which are the messages."""
    return sum(int(path.read_text()) for path in COUNTERS.glob(f"*/ports/1/hw_counters/{counter}"))


class OverVerbs(FarTest):
    network = "rc"
    # Among these, a thread that yields lets the others run at once.
    within = ("chrt", "-r", "5")

    def setUp(self):
        super().setUp()
        self.before = {name: sent(name) for name in ("sent_pkts", "rdma_sends")}

    def options(self, *more, memory="32M"):
        return ["--local", "8M", "--memory", memory, "--apart", "network", "--network", self.network, *more]

    def torture_over_verbs(self, *options, **others):
        words = self.options("--stats=json", *options, **others)
        status, output, error = self.run_job("far", *words, "--", TORTURE, 1, 1, 1, 12)
        self.assertEqual((status, output), (0, "ok\n"), error)
        return statistics_in(error)

    def check_traffic(self, moved_bytes):
        """Checks that at least so many bytes of pages crossed the network, and in which way. Over connections, an
        acknowledgement of a message is a packet, too, and pages that leave before the server's key has come are
        messages."""
        pages = moved_bytes // PAGE
        packets, messages = (sent(name) - before for name, before in self.before.items())
        self.assertGreater(pages, 1000)
        self.assertGreaterEqual(packets, pages, "each page takes a packet")
        if self.network == "rc":
            self.assertLess(messages, packets / 4, "pages move by put and get")
        else:
            self.assertGreaterEqual(messages, pages, "datagrams have neither")

    def check_all_traffic(self, found):
        self.assertEqual(found["failures"], 0)
        self.check_traffic(found["bytes_in"] + found["bytes_out"])


class Connections(OverVerbs):
    def test_pages_move_by_put_and_get(self):
        self.check_all_traffic(self.torture_over_verbs())

    def test_cold_pages_go_to_a_file_of_the_keeper(self):
        with tempfile.TemporaryDirectory() as folder:
            found = self.torture_over_verbs("--store", f"lz4,file:{folder}", memory="8M")
        self.assertGreater(found["bytes_to_file"], 0)
        self.assertEqual(found["failures"], 0)
        self.check_traffic(found["packed_bytes_out"])


class Datagrams(OverVerbs):
    network = "ud"

    def test_pages_move_as_messages(self):
        self.check_all_traffic(self.torture_over_verbs())

    # Not over connections: there an assertion of UCX 1.13 (openucx/ucx#10432) ends the ranks that live on, with the
    # Soft-RoCE of Linux 6.12.
    def test_no_page_is_lost_with_one_of_two_servers(self):
        options = self.options("--servers", "2", "--replicas", "2", "--progress", "--stats=json")
        job = self.start("far", *options, "--", TORTURE, 1, 1, 0, 12, "wait", stdin=-1)
        job.output.wait_for("ready")
        os.kill(self.server_of(job, 2), signal.SIGKILL)
        job.error.wait_for("faults", len(job.error.seen) + 2)  # it goes on for a while without that server
        job.process.stdin.close()
        status, output, error = job.end()
        self.assertEqual((status, output), (0, "ready\nok\n"), error)
        self.check_all_traffic(statistics_in(error))


class Benchmarks(FarBenchTest, OverVerbs):
    def test_results_of_the_benchmarks_are_right(self):
        _, output, _ = self.bench("stream", "--cases", "threads", "--threads", "1", "--local", "50", "--size", "20M",
                                  "--memory", "32M", "--apart", "network", "--network", self.network)
        self.assertIn("all as they should be", output)
        self.check_traffic(8 << 20)


if __name__ == "__main__":
    need_faults()  # a skip would be no success
    unittest.main()
