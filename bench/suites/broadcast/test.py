"""`tonari bench broadcast`, in quick form."""

import unittest

from harness.collectives import CollectiveTest


class Broadcast(CollectiveTest):
    question = "broadcast"

    def test_both_ways_to_broadcast_are_measured_until_each_rank_and_all_have_the_data(self):
        sizes = [1, 8, 4096, 300000]
        report, output, _ = self.bench("broadcast", "-n", "2,5", "--sizes", ",".join(map(str, sizes)))
        ways = [f"{way} ranks {ranks}" for ranks in (2, 5) for way in ("library", "tree")]
        self.assertEqual(self.cases(report, "tonari", "latency"), ways)
        for case in ways:
            self.check_positive(self.points(report, "tonari", case, "latency"), sizes)
        replies = [f"{way} from {rank}" for way in ways for rank in range(1, int(way[-1]))]
        self.assertCountEqual(self.cases(report, "tonari", "reply"), replies)
        for case in replies:
            self.check_positive(self.points(report, "tonari", case, "reply"), sizes)
        self.assert_table(output, "tree ranks 5 from 4", "reply, us, median")

    def test_rivals_measure_the_same_cases_as_tonari(self):
        self.check_rivals("--sizes", "8,4K")

    def test_wrong_numbers_of_ranks_are_refused(self):
        self.check_refuses_wrong_ranks()


if __name__ == "__main__":
    unittest.main()
