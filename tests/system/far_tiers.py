"""`tonari far --store lz4,file:DIRECTORY`: a program whose cold memory is in a file, and the rest compressed."""

import json
import os
import signal
import unittest

from far_file import CHILDREN, FileTest
from harness.far import NOBODY, TORTURE

PYTHON = "/usr/bin/python3"  # for other users, too
# 96 MiB of random bytes, and 96 MiB that shrink to almost nothing, are written and then read twice.
BOTH_KINDS = """
import os, random
dense = [random.Random(turn).randbytes(8 << 20) for turn in range(12)]
thin = [b'far memory %5d ' % turn * (512 << 10) for turn in range(12)]
for again in range(2):
    for turn in range(12):
        assert dense[turn] == random.Random(turn).randbytes(8 << 20)
        assert thin[turn].count(b'far memory %5d ' % turn) == 512 << 10
print('ok', flush=True)
os._exit(0)
"""
# 240 MiB of random bytes.
DENSE = """
import os, random
dense = [random.Random(turn).randbytes(2 << 20) for turn in range(120)]
assert all(dense[turn] == random.Random(turn).randbytes(2 << 20) for turn in range(120))
print('ok', flush=True)
os._exit(0)
"""


class Tiers(FileTest):
    def setUp(self):
        super().setUp()
        self.store = ("--store", f"lz4,file:{self.folder}")

    def test_pages_that_do_not_fit_into_memory_are_kept_in_a_file(self):
        for options in ([], ["--servers", "2", "--replicas", "2"], ["--apart", "network"]):
            with self.subTest(options=options):
                found = self.torture("--local", "16M", "--memory", "32M", *options, *self.store, rounds=20)
                self.assertEqual((found["in_file"], found["failures"]), (True, 0))
                self.assertGreater(found["bytes_to_file"], 40 << 20)
                self.assertGreater(found["bytes_from_file"], 40 << 20)
                self.assertGreater(found["file_peak_bytes"], 40 << 20)
                self.assertGreater(found["packed_bytes_out"], 40 << 20)
                self.assertLessEqual(found["stored_peak_bytes"], found["capacity_bytes"])

    def test_compressed_and_cold_pages_are_both_right(self):
        status, output, error = self.run_job("far", "--local", "8M", "--memory", "64M", "--stats=json", *self.store,
                                             "--", PYTHON, "-c", BOTH_KINDS)
        self.assertEqual((status, output), (0, "ok\n"), error)
        found = json.loads(error)
        self.assertEqual((found["in_file"], found["servers"], found["failures"]), (True, 1, 0))
        self.assertGreater(found["kept_bytes"], 16 << 20)
        self.assertLess(found["packed_bytes"], 64 << 20)
        self.assertGreater(found["file_bytes"], 32 << 20)
        self.assertGreater(found["bytes_from_file"], 32 << 20)

    def test_the_file_is_not_used_while_there_is_memory(self):
        found = self.torture("--local", "16M", "--memory", "512M", *self.store, rounds=20)
        self.assertEqual((found["bytes_to_file"], found["file_peak_bytes"]), (0, 0))

    def test_statistics_for_readers_name_both(self):
        status, _, error = self.run_job("far", "--local", "16M", "--memory", "32M", "--stats", *self.store, "--",
                                        TORTURE, 1, 2, 5, 96)
        self.assertEqual(status, 0, error)
        self.assertRegex(error, r"far memory: .* of 32 MiB at 1 server, \S+ MiB of disk space in a file\n")
        self.assertRegex(error, r"\nfile:       keeps cold pages: \S+ MiB were written, \S+ MiB were read\n$")

    def test_each_process_has_a_file_of_its_own(self):
        status, output, error = self.run_job("far", "--local", "16M", "--memory", "32M", "--children", *self.store,
                                             "--", CHILDREN, "tree", 1, 48)
        self.assertEqual(status, 0, error)
        self.assertTrue(output.endswith("ok\n"), output)

    def test_a_full_disk_does_not_matter_while_there_is_memory(self):
        self.on_a_small_disk(4)
        status, output, error = self.run_job("far", "--local", "8M", "--memory", "250M", "--stats=json", *self.store,
                                             "--", PYTHON, "-c", DENSE)
        self.assertEqual((status, output), (0, "ok\n"), error)
        found = json.loads(error)
        self.assertEqual((found["file_peak_bytes"], found["failures"]), (4 << 20, 0))

    def test_full_memory_and_a_full_disk_end_the_program_with_a_message(self):
        self.on_a_small_disk(20)
        status, output, error = self.run_job("far", "--local", "8M", "--memory", "32M", *self.store, "--", TORTURE, 1,
                                             4, 60, 96)
        self.assertEqual((status, output), (137, ""), error)
        self.assertRegex(error, rf"^tonari far: out of memory: the servers' 32 MiB are full, give them more \(--memory\); "
                         rf"and {self.folder} has no room left for the program's data, of which \S+ MiB are in the file "
                         r"\(No space left on device\): .*\n$")

    def test_a_directory_where_no_file_can_be_created_is_refused(self):
        status, _, error = self.run_job("far", "--store", "lz4,file:/no/such/directory", "--", "true")
        self.assertEqual(status, 2)
        self.assertIn("file:/no/such/directory: creating a file there: No such file or directory", error)

    def test_the_death_of_a_server_ends_the_program_with_a_message(self):
        job = self.start_torture("--local", "8M", "--memory", "32M", *self.store)
        os.kill(self.server_of(job, 1), signal.SIGKILL)
        status, _, error = job.end()
        self.assertEqual(status, 137)
        self.assertRegex(error, "server.* died")


class TiersOfAnOrdinaryUser(Tiers):
    user = NOBODY


if __name__ == "__main__":
    unittest.main()
