"""`tonari far --heap`: small allocations are far memory."""

import json
import os
import subprocess
import unittest

from harness.far import NOBODY, FarTest
from harness.jobs import PROGRAMS

COMMANDS = os.path.join(PROGRAMS, "far_commands")
SMALL = os.path.join(PROGRAMS, "far_small_objects")
PYTHON = """
import random, sys
seed = random.randrange(1 << 32)
print("seed", seed, file=sys.stderr)
random.seed(seed)
all = {i: [str(i), [i] * 4] for i in range(60_000)}
keys = list(all)
random.shuffle(keys)
for i in keys[:30_000]:
    assert all[i] == [str(i), [i] * 4], i
    all[i][1].append(-i)
assert sum(len(value[1]) for value in all.values()) == 270_000
print("ok")
"""


def is_installed(library):
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    return library in listed


class Heap(FarTest):
    def far(self, *words):
        status, output, error = self.run_job("far", "--heap", "--stats=json", *words)
        self.assertEqual((status, output), (0, "ok\n"), error)
        return json.loads(error.splitlines()[-1])

    def test_small_objects_leave_and_come_back(self):
        found = self.far("--local", "8M", "--", SMALL, "2", "60000", "30000")
        self.assertGreater(found["in_use_peak_bytes"], 12 << 20)
        self.assertGreater(found["bytes_in"], 1 << 20)

    def test_small_objects_stay_local_without_the_option(self):
        status, output, error = self.run_job("far", "--stats=json", "--local", "8M", "--", SMALL, "1", "10000", "1000")
        self.assertEqual((status, output), (0, "ok\n"), error)
        self.assertEqual(json.loads(error.splitlines()[-1])["bytes_out"], 0)

    def test_programs_are_started_with_all_that_libc_allocates_in_far_memory(self):
        for case in ("systems", "pipes", "executions", "spawns", "signals"):
            with self.subTest(case=case):
                self.far("--local", "8M", "--", COMMANDS, case)

    def test_objects_of_python_leave_and_come_back(self):
        found = self.far("--local", "8M", "--", "python3", "-c", PYTHON)
        self.assertGreater(found["bytes_in"], 1 << 20)


class HeapOfAnOrdinaryUser(Heap):
    user = NOBODY

    def test_the_keeper_cannot_serve_the_heap_of_this_user(self):
        status, _, error = self.run_job("far", "--heap", "--faults", "keeper", "--", "true")
        self.assertEqual(status, 2)
        self.assertIn("--heap: system calls of this user would not reach all of the heap", error)


class HeapByTheKeeper(FarTest):
    def test_small_objects_leave_and_come_back(self):
        status, output, error = self.run_job("far", "--heap", "--faults", "keeper", "--local", "8M", "--", SMALL, "2",
                                             "30000", "5000")
        self.assertEqual((status, output), (0, "ok\n"), error)


def setUpModule():
    if not is_installed("libjemalloc.so.2"):
        raise unittest.SkipTest("jemalloc is not installed: scripts/setup far")


if __name__ == "__main__":
    unittest.main()
