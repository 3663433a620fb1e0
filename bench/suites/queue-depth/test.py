"""`tonari bench queue-depth`, in quick form."""

import unittest

from harness.bench import BenchTest

CASES = ["all-to-all", "all-to-all-by-hand", "sort", "sort-by-hand", "fourier", "fourier-by-hand"]


class QueueDepth(BenchTest):
    def check(self, report, case, ranks):
        """Each rank has told its queues, and everything that was exchanged was right."""
        for metric in ("unexpected", "posted"):
            points = self.points(report, "tonari", case, metric)
            self.assertEqual(list(points), ranks)
            self.assertEqual([point["n"] for point in points.values()], ranks)
        wrong = self.points(report, "tonari", case, "wrong")
        self.assertEqual({rank: point["max"] for rank, point in wrong.items()}, dict.fromkeys(ranks, 0))

    def test_queue_depths_are_reported_for_every_case_and_number_of_ranks(self):
        report, output, _ = self.bench("queue-depth", "-n", 6)
        self.assertEqual(self.cases(report, "tonari", "unexpected"), CASES)
        for case in CASES:
            self.check(report, case, [2, 4, 6])
        self.assertIn("all as they should be", output)

    def test_an_all_to_all_by_hand_posts_at_most_one_receive_per_peer(self):
        report, _, _ = self.bench("queue-depth", "-n", 4, "--cases", "all-to-all-by-hand", "--bytes", 100000,
                                  "--exchanges", 50)
        for ranks, point in self.points(report, "tonari", "all-to-all-by-hand", "posted").items():
            self.assertLessEqual(point["max"], ranks - 1)
            self.assertGreaterEqual(point["max"], 1)

    def test_transpositions_by_hand_post_a_receive_per_peer(self):
        report, _, _ = self.bench("queue-depth", "-n", 3, "--cases", "fourier-by-hand")
        for ranks, point in self.points(report, "tonari", "fourier-by-hand", "posted").items():
            self.assertTrue(1 <= point["max"] <= ranks - 1, point)

    def test_the_sort_is_right_in_larger_classes(self):
        for name in ("W", "A"):
            with self.subTest(name=name):
                report, _, _ = self.bench("queue-depth", "-n", 3, "--cases", "sort,sort-by-hand", "--class", name)
                for case in ("sort", "sort-by-hand"):
                    self.check(report, case, [2, 3])

    def test_wrong_options_are_refused(self):
        self.assertIn("-n 2", self.refused("queue-depth", "-n", "1"))
        self.assertIn("all-to-all-by-hand", self.refused("queue-depth", "--cases", "all-to-none"))
        self.assertIn("--class: must be S or W or A", self.refused("queue-depth", "--class", "B"))
        for option in ("--bytes", "--exchanges"):
            self.assertIn(f"{option}: must be a number of", self.refused("queue-depth", option, "0"))
        self.assertIn("MPI does not report", self.refused("queue-depth", "--rival", "openmpi"))


if __name__ == "__main__":
    unittest.main()
