"""`tonari far --store file:DIRECTORY`: a program whose large memory is mostly in a file. And --store lz4,file:DIRECTORY:
a program whose cold memory is in a file, and the rest compressed."""

import json
import os
import signal
import subprocess
import tempfile
import unittest

from harness.far import NOBODY, TORTURE, FarTest
from harness.jobs import PROGRAMS, eventually, processes_marked

PYTHON = "/usr/bin/python3"  # for other users, too
CHILDREN = os.path.join(PROGRAMS, "far_children")
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


def used_bytes(folder):
    about = os.statvfs(folder)
    return (about.f_blocks - about.f_bfree) * about.f_frsize


class FileTest(FarTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="far-file-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        if self.user is not None:
            os.chown(self.folder, self.user, self.user)

    def on_a_small_disk(self, mib):
        """Lets jobs see a file system of this size in the folder."""
        if os.geteuid() != 0 or self.user is not None:
            self.skipTest("only root can mount a small disk")
        mount = f"mount -t tmpfs -o size={mib}M,mode=777 none {self.folder} && exec \"$@\""
        self.within = ["unshare", "--mount", "sh", "-c", mount, "sh"]


class File(FileTest):
    def setUp(self):
        super().setUp()
        self.store = ("--store", f"file:{self.folder}")

    def test_the_memory_of_a_program_is_kept_in_a_file(self):
        found = self.torture("--local", "16M", *self.store)
        self.assertEqual((found["in_file"], found["servers"], found["failures"]), (True, 0, 0))
        self.assertGreater(found["bytes_out"], 80 << 20)
        self.assertGreater(found["bytes_in"], 80 << 20)
        self.assertGreater(found["stored_peak_bytes"], 40 << 20)

    def test_each_process_has_a_file_of_its_own(self):
        status, output, error = self.run_job("far", "--local", "16M", "--children", *self.store, "--", CHILDREN,
                                             "tree", 1, 48)
        self.assertEqual(status, 0, error)
        self.assertTrue(output.endswith("ok\n"), output)

    def test_the_file_has_no_name_and_is_gone_when_a_run_is_killed(self):
        before = used_bytes(self.folder)
        job = self.start_torture("--local", "8M", *self.store)
        self.assertEqual(os.listdir(self.folder), [])
        job.process.send_signal(signal.SIGKILL)
        job.process.wait()
        eventually(lambda: not processes_marked(job.mark), "all processes of the run have ended")
        self.assertEqual(os.listdir(self.folder), [])
        # Other processes use the disk as well.
        eventually(lambda: used_bytes(self.folder) < before + (16 << 20), "the file's space is free again")

    def test_a_full_disk_ends_the_program_with_a_message(self):
        self.on_a_small_disk(40)
        status, output, error = self.run_job("far", "--local", "8M", *self.store, "--", TORTURE, 1, 4, 60, 96)
        self.assertEqual((status, output), (137, ""), error)
        self.assertRegex(error, rf"^tonari far: {self.folder} has no room left for the program's data, of which \S+ MiB "
                         r"are in the file \(No space left on device\): free space there, name another directory "
                         r"\(--store file:DIRECTORY\), or raise --local\n$")

    def test_a_directory_where_no_file_can_be_created_is_refused(self):
        for name, cause in (("/no/such/directory", "No such file or directory"), ("/proc", ".*")):
            with self.subTest(name=name):
                status, _, error = self.run_job("far", "--store", f"file:{name}", "--", "true")
                self.assertEqual(status, 2)
                self.assertRegex(error, rf"^tonari far: --store file:{name}: creating a file there: {cause}; name a "
                                 "directory on a disk, where you may create files\n$")

    def test_options_of_servers_are_refused_with_a_file(self):
        for words in (("--servers", "2"), ("--memory", "1G"), ("--at-once",), ("--replicas", "2")):
            with self.subTest(words=words):
                status, _, error = self.run_job("far", *words, *self.store, "--", "true")
                self.assertEqual((status, error), (2, f"tonari far: {words[0]} has no effect with --store "
                                                   "file:DIRECTORY, which uses no servers: omit one of the two\n"))


class FileOfAnOrdinaryUser(File):
    user = NOBODY


class Tiers(FileTest):
    def setUp(self):
        super().setUp()
        self.store = ("--store", f"lz4,file:{self.folder}")

    def test_pages_that_do_not_fit_into_memory_are_kept_in_a_file(self):
        for options in ([], ["--servers", "2", "--replicas", "2"], ["--apart", "network"]):
            with self.subTest(options=options):
                found = self.torture("--local", "16M", "--memory", "32M", *options, *self.store)
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
        self.assertRegex(error, r"far memory: .* of 32 MiB at 1 server, \S+ MiB in a file\n")
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
