"""`tonari far --store file:DIRECTORY`: a program whose large memory is mostly in a file."""

import os
import signal
import tempfile
import unittest

from harness.far import NOBODY, TORTURE, FarTest
from harness.jobs import PROGRAMS, eventually, processes_marked

CHILDREN = os.path.join(PROGRAMS, "far_children")


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
        for name, why in (("/no/such/directory", "No such file or directory; name a directory on a disk, where you may "
                                                 "create files"),
                          ("/proc", "the file system of /proc holds no files of users; name a directory on a disk"),
                          ("/sys/kernel", "the file system of /sys/kernel holds no files of users; name a .*")):
            with self.subTest(name=name):
                status, _, error = self.run_job("far", "--store", f"file:{name}", "--", "true")
                self.assertEqual(status, 2)
                self.assertRegex(error, rf"^tonari far: --store file:{name}: creating a file there: {why}\n$")

    def test_options_of_servers_are_refused_with_a_file(self):
        for words in (("--servers", "2"), ("--memory", "1G"), ("--at-once",), ("--replicas", "2")):
            with self.subTest(words=words):
                status, _, error = self.run_job("far", *words, *self.store, "--", "true")
                self.assertEqual((status, error), (2, f"tonari far: {words[0]} has no effect with --store "
                                                   "file:DIRECTORY, which uses no servers: omit one of the two\n"))


class FileOfAnOrdinaryUser(File):
    user = NOBODY


if __name__ == "__main__":
    unittest.main()
