"""The examples check their own results; here they run on several numbers of ranks."""

import os
import subprocess
import unittest

from harness.far import faults_told
from harness.jobs import BIN, JobTest, has_sanitizer

EXAMPLES = os.path.join(BIN, "..", "examples")


class Examples(JobTest):
    def run_example(self, ranks, name, *arguments, way=()):
        path = os.path.join(EXAMPLES, name)
        if not os.access(path, os.X_OK):
            self.skipTest("examples are not built")
        status, output, error = self.run_job("run", "-n", ranks, *way, path, *arguments)
        self.assertEqual((status, error), (0, ""), output)
        return output

    def test_hello_reaches_the_next_rank(self):
        for ranks in (1, 2, 5):
            with self.subTest(ranks=ranks):
                lines = sorted(self.run_example(ranks, "hello").splitlines())
                expected = [f"rank {rank} of {ranks} heard: good morning from rank {(rank - 1) % ranks}"
                            for rank in range(ranks)]
                self.assertEqual(lines, expected)

    def test_heat_agrees_with_the_exact_solution(self):
        for ranks, rows in ((1, 10), (2, 50), (3, 50), (4, 4)):
            with self.subTest(ranks=ranks, rows=rows):
                self.assertIn("largest error", self.run_example(ranks, "heat", rows, 100))

    def test_a_tree_is_the_same_for_all_ranks(self):
        for way in ([], ["--apart", "memory"], ["--apart", "network", "--network", "tcp"]):
            for ranks in (1, 3):
                with self.subTest(way=way, ranks=ranks):
                    output = self.run_example(ranks, "tree", 2000, way=way)
                    self.assertRegex(output, rf"^tree: 2000 words, \d+ different ones, counted by {ranks} ranks; "
                                             rf"{ranks} see the same tree\n$")

    def test_a_window_contains_the_values_that_its_neighbour_wrote(self):
        for ranks in (1, 4):
            with self.subTest(ranks=ranks):
                lines = sorted(self.run_example(ranks, "window").splitlines())
                expected = [f"rank {rank}: rank {(rank - 1) % ranks} wrote {((rank - 1) % ranks) ** 2} into my memory; "
                            f"rank 0's counter stands at {1000 * ranks}" for rank in range(ranks)]
                self.assertEqual(lines, expected)

    def test_a_shared_array_and_guarded_data_are_the_same_on_one_host_and_between_hosts(self):
        for way, hosts in (([], 1), (["--apart", "memory"], 3)):
            with self.subTest(way=way):
                self.assertIn(f"3 ranks on {hosts} hosts filled one array; its last element is 999998000001,",
                              self.run_example(3, "shared_array", way=way))
                lines = sorted(self.run_example(3, "guarded", way=way).splitlines())
                self.assertEqual(lines, [f"rank {rank} of 3 sees 300 deposits and a balance of 1500"
                                         for rank in range(3)])

    def test_collectives_give_all_ranks_their_results(self):
        for ranks in (1, 4):
            with self.subTest(ranks=ranks):
                self.assertRegex(self.run_example(ranks, "collectives"),
                                 rf"^{ranks} ranks: the numbers below 1000 add up to 499500; the largest part is \d+; "
                                 rf"{ranks * (ranks + 1) // 2} values gathered\n$")

    def test_changes_under_a_lock_are_never_lost(self):
        for way in ([], ["--apart", "memory"]):
            with self.subTest(way=way):
                lines = sorted(self.run_example(3, "locks", way=way).splitlines())
                self.assertEqual(lines, [f"rank {rank} of 3: 300 and -300 under the mutex, 300 and -300 under the "
                                         "window's lock" for rank in range(3)])

    def test_a_queue_executes_what_was_posted(self):
        for way in ([], ["--apart", "memory"]):
            with self.subTest(way=way):
                lines = sorted(self.run_example(3, "queue", way=way).splitlines())
                self.assertEqual(lines, [f"rank {rank}: the rank before me pushed {100 + (rank - 1) % 3}; 3 ranks have "
                                         "counted; computed 12.090" for rank in range(3)])

    def test_a_far_table_is_right_without_far_memory_too(self):
        path = os.path.join(EXAMPLES, "far_memory")
        if not os.access(path, os.X_OK):
            self.skipTest("examples are not built")
        ended = subprocess.run([path], capture_output=True, text=True, env=self.environment())
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "plain memory: 0 wrong words\n", ""))
        if has_sanitizer(path):
            self.skipTest("a sanitizer's library wants to be the first that is loaded")
        if faults_told() is None:
            self.skipTest("this kernel has no far memory: see tonari info")
        status, output, error = self.run_job("far", "--local", "16M", path)
        self.assertEqual(status, 0, error)
        self.assertEqual(output, "far memory: 0 wrong words; at most 16 MiB were local; servers sent pages\n")

    def test_examples_print_why_they_cannot_join(self):
        for name in ("hello", "heat", "restart", "tree"):
            path = os.path.join(EXAMPLES, name)
            if not os.access(path, os.X_OK):
                self.skipTest("examples are not built")
            ended = subprocess.run([path], capture_output=True, text=True, env=self.environment(TONARI_SPLIT="many"))
            self.assertEqual((ended.returncode, ended.stdout), (1, ""))
            self.assertRegex(ended.stderr, f"^{name}: TONARI_SPLIT=many: must be a number from 0 to 48; .*\n$")


if __name__ == "__main__":
    unittest.main()
