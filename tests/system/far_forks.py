"""Forked children of a program with far memory: they inherit it as it was at the fork."""

import os
import random
import signal
import tempfile
import unittest

from harness.far import NOBODY, SOAK, FarTest
from harness.jobs import PROGRAMS, eventually, processes_marked, state_of

FORKS = os.path.join(PROGRAMS, "far_forks")
PYTHON = "/usr/bin/python3"  # no wrapper that executes another, which would have no far memory
# A pool of forked workers reads memory of the parent.
POOL = """
import multiprocessing
x = bytearray(b"a pool! ") * (8 << 20)
def count(part):
    return len(x[part << 24:part + 1 << 24].replace(b"!", b""))
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(sum(pool.map(count, range(4))))
"""
# The arguments of the executed program are in far memory, where most pages are absent.
EXECUTING = """
import os
x = bytearray(96 << 20)
words = ["echo", "y" * (100 << 10)]
if os.fork() == 0:
    os.execvp(words[0], words)
os.wait()
"""


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return None


class Forks(FarTest):
    def forks(self, *words, faults="keeper", options=()):
        status, output, error = self.run_job("far", "--faults", faults, "--local", "16M", *options, "--", FORKS, *words)
        return status, output, error

    def torture(self, *options, faults, rounds=2 * SOAK):
        """Runs far_forks with new seeds, and shows that of a failure."""
        for _ in range(rounds):
            seed = random.SystemRandom().randrange(1 << 32)
            found = self.forks("torture", seed, 300, 48, faults=faults, options=options)
            self.assertEqual(found, (0, "ok\n", ""), f"seed {seed}")

    def test_parents_and_children_write_free_and_fork_again(self):
        for faults in ("keeper", "self"):
            with self.subTest(faults=faults):
                self.torture(faults=faults)
                # This one maps over memory that it has inherited and moved, and moves it again.
                self.assertEqual(self.forks("torture", 16, 1000, 48, faults=faults), (0, "ok\n", ""))

    def test_a_daemon_that_closes_its_descriptors_outlives_its_parent(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            path = os.path.join(folder, "written")
            self.assertEqual(self.forks("daemon", path), (0, "", ""))
            with open(path) as file:
                self.assertEqual(file.read(), "ok\n")

    def test_a_child_whose_fork_finds_no_descriptor_is_told(self):
        status, output, error = self.forks("refused")
        self.assertEqual((status, output), (0, f"{int(signal.SIGSEGV)}\n"))
        self.assertRegex(error, "^tonari far: a forked child touched far memory of its parent that it could not inherit")

    def test_the_child_of_a_plain_system_call_gets_a_segmentation_fault(self):
        self.assertEqual(self.forks("raw")[:2], (0, f"{int(signal.SIGSEGV)}\n"))

    def test_pools_of_forked_workers_read_memory_of_their_parent(self):
        for faults in ("keeper", "self"):
            with self.subTest(faults=faults):
                found = self.run_job("far", "--faults", faults, "--local", "16M", "--", PYTHON, "-c", POOL)
                self.assertEqual(found, (0, f"{(8 << 20) * 7}\n", ""))

    def test_a_child_executes_a_program_with_arguments_in_far_memory(self):
        status, output, error = self.run_job("far", "--min-size", "64K", "--local", "16M", "--", PYTHON, "-c", EXECUTING)
        self.assertEqual((status, len(output), error), (0, (100 << 10) + 1, ""))


class ForksOfAnOrdinaryUser(Forks):
    user = NOBODY


class ForksOfRoot(Forks):
    def test_a_child_may_change_its_user(self):
        for faults in ("keeper", "self"):
            with self.subTest(faults=faults):
                self.assertEqual(self.forks("user", NOBODY, faults=faults), (0, "0\n", ""))


class StoresAndEndings(FarTest):
    forks = Forks.forks
    torture = Forks.torture

    def test_old_pages_are_kept_in_compressed_memory_and_in_files(self):
        for store in (["lz4"], ["file:."], ["lz4,file:.", "--memory", "32M"]):
            with self.subTest(store=store):
                self.torture("--store", *store, faults="keeper", rounds=SOAK)

    def test_the_death_of_one_of_two_servers_loses_nothing(self):
        seed = random.SystemRandom().randrange(1 << 32)
        job = self.start("far", "--local", "16M", "--servers", 2, "--replicas", 2, "--", FORKS, "torture", seed, 2000, 48)
        eventually(lambda: len([pid for pid in processes_marked(job.mark) if name_of(pid) == "far_forks"]) > 1, "it forks")
        os.kill(self.server_of(job, 1), signal.SIGKILL)
        status, output, error = job.end()
        self.assertEqual((status, output), (0, "ok\n"), f"seed {seed}: {error}")

    def test_the_death_of_the_keeper_ends_children_too(self):
        for faults in ("keeper", "self"):
            with self.subTest(faults=faults):
                job = self.start("far", "--faults", faults, "--local", "16M", "--", FORKS, "waiting")
                _, child = map(int, job.output.wait_for(r"(\d+) (\d+)").groups())
                os.kill(self.server_of(job, 0), signal.SIGKILL)
                self.assertEqual(job.end()[0], 137)
                eventually(lambda: state_of(child) in (None, "Z"), "the child has ended")

    def test_tonari_far_waits_for_a_child_and_ends_it_when_told_to(self):
        job = self.start("far", "--local", "16M", "--", FORKS, "waiting")
        program, child = map(int, job.output.wait_for(r"(\d+) (\d+)").groups())
        os.kill(program, signal.SIGKILL)
        eventually(lambda: state_of(program) is None, "tonari far knows that the program has ended")
        self.assertEqual(state_of(child), "S")
        job.signal(signal.SIGTERM)
        self.assertEqual(job.end()[0], 137)
        eventually(lambda: state_of(child) in (None, "Z"), "the child has ended")


if __name__ == "__main__":
    unittest.main()
