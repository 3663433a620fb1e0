"""Several ranks of a host share its link: what `tonari bench contention` says of a link whose rate is known."""

import json
import os

from bed import launchers
from bed.case import LauncherTest
from bed.world import SHARED, main
from harness.jobs import BIN

WORKER = os.path.join(BIN, "..", "libexec", "tonari", "bench-worker")
LINK = 400e6  # bits per second: far below the speed of this machine
# Four messages of a sender occupy the link for 80 ms: far longer than a full bucket takes to send, and than the time
# between the senders' starts.
SIZE = 1 << 20


class Contention(LauncherTest):
    def rates(self, hosts, senders):
        """GB/s by way and number of senders."""
        answers = os.path.join(SHARED, "answers")
        words = [WORKER, "contention", f"--sizes={SIZE}", "--budget-us=500000", f"--output={answers}"]
        status, _, error = self.run_to_end(hosts, [*launchers.openmpi4(), "--bind-to", "none"], "-n", "4", *words)
        self.assertEqual((status, error), (0, ""))
        with open(answers) as file:
            lines = [json.loads(line) for line in file]
        os.remove(answers)
        found = {}
        for line in lines:
            if line.get("series", {}).get("metric") == "rate":
                samples = sorted(line["samples"])
                found[line["series"]["case"].split()[0], line["at"]] = samples[len(samples) // 2]
        self.assertEqual(sorted(found), sorted([("pairs", n) for n in (1, 2)] + [("incast", n) for n in senders]))
        return found

    def test_the_measured_rate_is_at_most_the_rate_of_the_link(self):
        hosts = self.make_hosts(2)
        for host in (0, 1):
            hosts.limit(host, int(LINK))
        found = self.rates(hosts, (1, 2, 3))
        link = LINK / 8e9
        for senders in (1, 2):
            # How near it comes is TCP's: a queue that drops makes it wait for long.
            self.assertTrue(0.01 * link < found["pairs", senders] < 1.1 * link, found)
        # Rank 1 is rank 0's neighbour, ranks 2 and 3 are behind the link.
        self.assertTrue(0.01 * link < found["incast", 3] < 1.65 * link, found)


if __name__ == "__main__":
    main()
