"""`tonari bench coherence`, in quick form."""

import unittest

from harness.bench import BenchTest

CASES = {"read-random": [256], "read-sequential": [256], "read-strided": [16], "write-upgrade": [256],
         "release": [1, 64], "barrier": [2], "lock-again": [2], "lock-handover": [2]}
MOVERS = ["owner-puts", "asker-asks", "asker-gets"]
CASES.update({f"guarded-handover {mover}": [8, 4096] for mover in MOVERS})
WITH_READERS = ["invalidate", *(f"update {mover}" for mover in MOVERS)]
WITH_READERS += [f"{case} one-by-one" for case in WITH_READERS] + [f"guarded-read {mover}" for mover in MOVERS]


class Coherence(BenchTest):
    def check(self, readers, *arguments):
        report, output, _ = self.bench("coherence", "--readers", ",".join(map(str, readers)), *arguments)
        for case, points in CASES.items():
            self.assertEqual(list(self.points(report, "tonari", case, "latency")), points)
        for case in WITH_READERS:
            first = self.points(report, "tonari", case, "first")
            last = self.points(report, "tonari", case, "last")
            self.assertEqual((list(first), list(last)), (readers, readers))
            for x in readers:
                self.assertLessEqual(first[x]["median"], last[x]["median"])
        self.assertEqual(list(self.points(report, "tonari", "invalidate", "latency")), readers)
        self.assertRegex(output, "(?m)^readers +" + " +".join(map(str, readers)) + "$")

    def test_each_case_of_coherence_is_measured_between_hosts_in_memory(self):
        self.check([1, 3])

    def test_each_case_of_coherence_is_measured_over_the_network(self):
        self.check([1], "--apart", "network", "--network", "tcp")

    def test_a_single_rank_is_refused(self):
        self.assertIn("coherence needs two ranks at least: -n 2", self.refused("coherence", "-n", 1))


if __name__ == "__main__":
    unittest.main()
