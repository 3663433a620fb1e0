"""`tonari bench barrier`, `broadcast`, `allreduce` and `alltoall`, in quick form."""

import unittest

from harness.bench import BenchTest, has_rival


class CollectiveTest(BenchTest):
    def check_positive(self, points, x):
        self.assertEqual(list(points), x)
        self.assertTrue(all(point["min"] > 0 for point in points.values()))

    def check_rivals(self, question, *arguments):
        """Each MPI answers every series that tonari answers."""
        for mpi in ("openmpi", "mpich"):
            if not has_rival(mpi, question):
                continue
            with self.subTest(mpi=mpi):
                report, output, _ = self.bench(question, "-n", "2", *arguments, "--rival", f"{mpi}-default")
                answers = {}
                for series in report["series"]:
                    answer = (series["case"], series["metric"], [point["x"] for point in series["points"]])
                    answers.setdefault(series["system"], []).append(answer)
                self.assertEqual(len(answers), 2)
                ours, theirs = answers.values()
                self.assertEqual(ours, theirs)
                self.assertIn("vs best", output)


class Barrier(CollectiveTest):
    def test_is_measured_with_each_number_of_ranks(self):
        report, output, _ = self.bench("barrier", "--ranks", "3,2,5,2")
        self.check_positive(self.points(report, "tonari", "barrier", "latency"), [2, 3, 5])
        self.assertEqual(report["parameters"]["ranks"], [2, 3, 5])
        self.assertIn("barrier: latency, us, median", output)

    def test_rivals_are_asked_the_same(self):
        self.check_rivals("barrier")


class Broadcast(CollectiveTest):
    def test_is_measured_by_both_ways_until_each_rank_and_all_have_it(self):
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
        self.assertIn("tree ranks 5 from 4: reply, us, median", output)

    def test_rivals_are_asked_the_same(self):
        self.check_rivals("broadcast", "--sizes", "8,4K")


class Allreduce(CollectiveTest):
    def test_is_measured_at_every_size_with_each_number_of_ranks(self):
        report, output, _ = self.bench("allreduce", "--ranks", "2,3", "--sizes", "8,24,64K")
        self.assertEqual(self.cases(report, "tonari", "latency"), ["ranks 2", "ranks 3"])
        for case in ("ranks 2", "ranks 3"):
            self.check_positive(self.points(report, "tonari", case, "latency"), [8, 24, 65536])
        self.assertIn("ranks 3: latency, us, median", output)

    def test_of_half_a_double_is_refused(self):
        self.assertIn("--sizes: 12 bytes are not a whole number of doubles; choose multiples of 8",
                      self.refused("allreduce", "--sizes", "8,12"))

    def test_rivals_are_asked_the_same(self):
        self.check_rivals("allreduce", "--sizes", "8,4K")


class Alltoall(CollectiveTest):
    def test_is_measured_with_each_number_of_ranks_at_every_size(self):
        report, output, _ = self.bench("alltoall", "--ranks", "2,3", "--sizes", "1,1K,100K")
        self.assertEqual(self.cases(report, "tonari", "latency"), ["bytes 1", "bytes 1024", "bytes 102400"])
        for case in ("bytes 1", "bytes 1024", "bytes 102400"):
            self.check_positive(self.points(report, "tonari", case, "latency"), [2, 3])
        self.assertIn("bytes 1024: latency, us, median", output)

    def test_rivals_are_asked_the_same(self):
        self.check_rivals("alltoall", "--sizes", "8,4K")


class Refusal(BenchTest):
    def test_of_wrong_numbers_of_ranks_says_what_is_right(self):
        for question in ("barrier", "broadcast", "allreduce", "alltoall"):
            for ranks in ("1", "0", "x", "-4", "2,99999"):
                with self.subTest(question=question, ranks=ranks):
                    self.assertRegex(self.refused(question, f"--ranks={ranks}"),
                                     r"--ranks: it takes numbers from 2 to \d+ with commas between; '.*' is none")
            self.assertRegex(self.refused(question, "--ranks", ","), r"--ranks: it takes numbers from 2 to \d+")


if __name__ == "__main__":
    unittest.main()
