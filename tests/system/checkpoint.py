"""A job that is killed, and started again, goes on from its last checkpoint: examples/restart.cpp."""

import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness.jobs import BIN, PROGRAMS, SOAK, JobTest, processes_marked, seeds

RESTART = os.path.join(BIN, "..", "examples", "restart")
DEATHS = os.path.join(PROGRAMS, "checkpoint_deaths")
ROWS = 100
FOREVER = 10**9  # steps


class Checkpoint(JobTest):
    apart = {}

    def setUp(self):
        if not os.access(RESTART, os.X_OK):
            self.skipTest("examples are not built")
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="checkpoint-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "plate")

    def start_plate(self, ranks, steps, between):
        return self.start("run", "-n", ranks, RESTART, self.file, ROWS, steps, between,
                          env=self.environment(**self.apart))

    def finish(self, ranks, steps, between):
        """Runs the program to its end and returns its output."""
        status, output, error = self.start_plate(ranks, steps, between).end()
        self.assertEqual((status, error), (0, ""), output)
        return output

    def expect_as_if_undisturbed(self, output, steps):
        self.assertRegex(output, r"^goes on from step \d+\n")
        self.assertEqual(os.listdir(self.folder), ["plate"])
        os.remove(self.file)  # as it was at the beginning
        undisturbed = self.finish(2, steps, FOREVER)
        self.assertRegex(undisturbed, rf"^warmth after {steps} steps: [0-9.]+\n$")
        self.assertEqual(output.splitlines()[-1] + "\n", undisturbed)

    def process_of(self, job, rank):
        for pid in processes_marked(job.mark):
            with open(f"/proc/{pid}/environ") as environment, open(f"/proc/{pid}/cmdline") as command:
                if f"TONARI_RANK={rank}\0" in environment.read() and command.read().startswith(RESTART):
                    return pid
        self.fail(f"no rank {rank}")

    def kill(self, job, rank):
        """Kills a rank, checks that the job ends and names that rank, and returns the last step that was saved."""
        os.kill(self.process_of(job, rank), signal.SIGKILL)
        status, output, error = job.end()
        self.assertEqual(status, 128 + signal.SIGKILL, error)
        self.assertRegex(error, rf"^tonari: rank {rank} \(pid \d+, host \S+\) was killed by signal 9 \(Killed\); ")
        return int(re.findall(r"saved step (\d+)\n", output)[-1])

    def test_a_killed_job_started_again_ends_with_the_same_result(self):
        for killed in range(3):
            with self.subTest(killed=killed):
                job = self.start_plate(3, FOREVER, 50)
                job.output.wait_for("saved step", 2)
                steps = self.kill(job, killed) + 120

                output = self.finish(4, steps, 50)

                self.expect_as_if_undisturbed(output, steps)

    def test_a_job_killed_repeatedly_while_it_saves_goes_on_from_its_last_checkpoint(self):
        seed = seeds(1)[0]
        with self.subTest(TONARI_SEED=seed):
            self.kill_repeatedly(random.Random(seed))

    def kill_repeatedly(self, chosen):
        saved = 0
        for _ in range(6 * SOAK):
            job = self.start_plate(3, FOREVER, 1)
            job.output.wait_for("saved step", chosen.randint(1, 20))
            time.sleep(chosen.uniform(0, 0.01))
            before, saved = saved, self.kill(job, chosen.randint(0, 2))
            self.assertGreater(saved, before)
        steps = saved + 5

        output = self.finish(2, steps, 1)

        self.expect_as_if_undisturbed(output, steps)


class CheckpointApart(Checkpoint):
    apart = {"TONARI_APART": "memory"}


class Deaths(JobTest):
    """A rank is killed at each point of a load or save, and the others outlive it: programs/checkpoint_deaths.cpp."""

    apart = {}

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="checkpoint-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "state")

    def run_until(self, victim, point, call):
        """Returns the steps that were loaded and saved (None if there was no such step), and whether a rank died."""
        status, output, error = self.run_job("run", "-n", 3, DEATHS, self.file, victim, point, call,
                                             env=self.environment(**self.apart))
        died = status != 0
        if died:
            self.assertEqual(status, 128 + signal.SIGKILL, error)
            self.assertRegex(error, rf"^tonari: rank {victim} \(pid \d+, host \S+\) was killed by signal 9 \(Killed\)")
            self.assertEqual(error.count("was killed"), 1, error)
        survivors = [rank for rank in range(3) if died and rank != victim]
        refusals = re.findall(rf"^rank (\d): (?:load|sav)ing {self.file}: (.*)$", output, re.MULTILINE)
        self.assertEqual(sorted(int(rank) for rank, _ in refusals), survivors, output)
        self.assertTrue(all("died" in why for _, why in refusals), output)
        step = lambda verb: next(map(int, re.findall(rf"^{verb} (\d+)$", output, re.MULTILINE)), None)
        return step("loaded"), step("saved"), died

    def test_a_death_during_a_save_leaves_the_last_checkpoint_or_the_next(self):
        known = 0
        points = []
        for victim in (0, 1):
            died, point = True, 0
            while died:
                point += 1
                loaded, saved, died = self.run_until(victim, point, "save")
                self.assertIn(loaded, (known, known + 1))
                known = saved or loaded
                self.assertLessEqual(len(os.listdir(self.folder)), 2)
            self.assertEqual(os.listdir(self.folder), ["state"])
            points.append(point - 1)
        # Pieces and their fsync; and of rank 0 the front, its fsync, the rename, that of the directory.
        self.assertEqual(points, [2 + 1 + 4, 1 + 1])


class DeathsApart(Deaths):
    apart = {"TONARI_APART": "memory"}

    def test_a_death_during_a_load_leaves_the_checkpoint_unchanged(self):
        self.assertEqual(self.run_until(0, 0, "load"), (0, 1, False))
        for victim, point in ((0, 1), (0, 4), (1, 2), (1, 4)):
            loaded, saved, died = self.run_until(victim, point, "load")
            self.assertEqual((loaded, saved, died), (None, None, True))
        self.assertEqual(self.run_until(0, 0, "load"), (1, 2, False))


class FullDisk(JobTest):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="checkpoint-")
        self.addCleanup(os.rmdir, self.folder)
        own = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        thrice = 'mount -t tmpfs -o size=5m none "$0" && "$@" && "$@" && "$@" && ls "$0"'
        self.within = [*own, "sh", "-c", thrice, self.folder]
        if subprocess.run([*self.within, "true"], capture_output=True).returncode != 0:
            self.skipTest("no file system of one's own can be mounted here")

    def test_a_full_disk_leaves_the_last_checkpoint(self):
        status, output, error = self.run_job("run", "-n", 3, DEATHS, os.path.join(self.folder, "state"), 0, 0, "save")

        self.assertEqual((status, error), (0, ""), output)
        self.assertEqual(re.findall(r"^(?:loaded|saved) \d$|^state.*$", output, re.MULTILINE),
                         ["loaded 0", "saved 1", "loaded 1", "loaded 1", "state"])
        refusals = re.findall(r"^rank \d: saving .*: No space left on device; free space there", output, re.MULTILINE)
        self.assertEqual(len(refusals), 2 * 3, output)


if __name__ == "__main__":
    unittest.main()
