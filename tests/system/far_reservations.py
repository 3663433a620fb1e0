"""Address space that programs reserve with PROT_NONE and open later."""

import json
import os
import random
import unittest

from harness.far import NOBODY, SOAK, FarTest
from harness.jobs import PROGRAMS

RESERVATIONS = os.path.join(PROGRAMS, "far_reservations")
PYTHON = "/usr/bin/python3"  # no wrapper that executes another, which would have no far memory
MIB = 1 << 20
TOOLS = """
import ctypes, os
MIB, LARGE, NONE, READ, READ_WRITE, ALL, FIXED = 1 << 20, 5 << 18, 0, 1, 3, 7, 0x10
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
def map(start, count, protection, more=0):
    flags = 0x4022 | more  # MAP_NORESERVE, MAP_PRIVATE and MAP_ANONYMOUS
    return libc.mmap(ctypes.c_void_p(start), ctypes.c_size_t(count), protection, flags, -1, ctypes.c_long(0))
def protect(start, count, protection):
    assert libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(count), protection) == 0
def free(start, count):
    assert libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(count)) == 0
def move(start, count, wanted, *to):
    there = [ctypes.c_void_p(place) for place in to]
    return libc.mremap(ctypes.c_void_p(start), ctypes.c_size_t(count), ctypes.c_size_t(wanted), 3 if to else 1, *there)
def fill(start, count, value):
    ctypes.memset(start, value, count)
def has(start, count, value):
    piece = min(count, 1 << 16)  # small copies, which are local
    return all(ctypes.string_at(at, piece) == bytes([value]) * piece for at in range(start, start + count, piece))
"""
# How much of it is counted as in use at most, and what the program does.
OPENED = {
    "by mprotect": (32, """
start = map(None, 64 * MIB, NONE)
protect(start + 8 * MIB, 32 * MIB, READ_WRITE)
fill(start + 8 * MIB, 32 * MIB, 7)
assert has(start + 8 * MIB, 32 * MIB, 7)
"""),
    "by mmap": (32, """
start = map(None, 64 * MIB, NONE)
assert map(start + 8 * MIB, 32 * MIB, READ_WRITE, FIXED) == start + 8 * MIB
fill(start + 8 * MIB, 32 * MIB, 7)
assert has(start + 8 * MIB, 32 * MIB, 7)
"""),
    "and closed again": (32, """
start = map(None, 64 * MIB, NONE)
for i in range(5):
    protect(start, 32 * MIB, READ_WRITE)
    assert has(start, 32 * MIB, 0)
    fill(start, 32 * MIB, 7)
    assert map(start, 32 * MIB, NONE, FIXED) == start
"""),
    "and freed": (16, """
for i in range(100):
    start = map(None, 64 * MIB, NONE)
    protect(start, 16 * MIB, READ_WRITE)
    fill(start, 4096, 7)
    free(start, 64 * MIB)
"""),
    "to be executed": (0, """
start = map(None, 64 * MIB, NONE)
assert map(start, 16 * MIB, ALL, FIXED) == start
protect(start + 16 * MIB, 16 * MIB, ALL)
fill(start, 32 * MIB, 0xc3)
ctypes.CFUNCTYPE(None)(start + 20 * MIB)()
assert has(start, 32 * MIB, 0xc3)
"""),
    "in small steps": (0, """
start = map(None, 64 * MIB, NONE)
for step in range(512):
    protect(start + (step << 16), 1 << 16, READ_WRITE)
    fill(start + (step << 16), 1 << 16, 7)
assert has(start, 32 * MIB, 7)
"""),
    "after it has moved": (0, """
start = move(map(None, 2 * MIB, NONE), 2 * MIB, 64 * MIB)
protect(start, 4096, READ_WRITE)
fill(start, 4096, 7)
start = move(start, 4096, 8192)
assert has(start, 4096, 7) and has(start + 4096, 4096, 0)
"""),
    "by mremap": (0, """
start = map(None, 64 * MIB, NONE)
small = map(None, 8192, READ_WRITE)
fill(small, 8192, 7)
assert move(small, 8192, 8192, start + MIB) == start + MIB
assert has(start + MIB, 8192, 7)
"""),
    "at a low address": (0, """
assert map(0x6000000000, 64 * MIB, NONE) == 0x6000000000
protect(0x6000000000, 64 * MIB, READ_WRITE)
"""),
    "at a round address": (0, """
assert map(0x40000000000, 64 * MIB, NONE) == 0x40000000000
protect(0x40000000000, 64 * MIB, READ_WRITE)
"""),
    "at another address": (64, """
protect(map(0x40000004000, 64 * MIB, NONE), 64 * MIB, READ_WRITE)
"""),
}
# Pages of zeros come with other pages of the same block. In the reserved part of the block they cannot be read.
NEIGHBOURS = {
    "freed before": """
first, second = map(None, LARGE, READ_WRITE), map(None, LARGE, READ_WRITE)
assert second == first + LARGE
free(second, LARGE)
for page in range(first, first + LARGE, 4096):
    fill(page, 8, 7)
free(first, LARGE)
assert map(None, 4 * MIB, NONE) == first
""",
    "freed partly": """
start = map(None, 8 * MIB, NONE)
free(start + 2 * LARGE, 8 * MIB - 2 * LARGE)
assert map(None, LARGE, READ_WRITE) == start + 2 * LARGE
for page in reversed(range(start + 2 * LARGE, start + 3 * LARGE, 4096)):
    fill(page, 8, 7)
""",
    "opened partly": """
start = map(None, 8 * MIB, NONE)
protect(start + 2 * LARGE, LARGE, READ_WRITE)
for page in reversed(range(start + 2 * LARGE, start + 3 * LARGE, 4096)):
    fill(page, 8, 7)
""",
}
PRESSURE = """
others = map(None, 96 * MIB, READ_WRITE)
for turn in range(60000):
    fill(others + turn * 7919 % (96 << 8) * 4096, 8, 1)
"""
# Half of the arena of 1 TiB may be reserved. Reservations beyond that are local.
TOO_LARGE = """
starts = [map(None, 200 << 30, NONE) for i in range(6)]
for start in starts:
    protect(start + (100 << 30), 8 * MIB, READ_WRITE)
    fill(start + (100 << 30), 8 * MIB, 7)
assert all(has(start + (100 << 30), 8 * MIB, 7) for start in starts)
far = (ctypes.c_char * (8 * MIB))()
"""


class Reservations(FarTest):
    def run_python(self, code, *options, local="8M"):
        """Returns how much was in use at most, in MiB."""
        status, output, error = self.run_job("far", "--stats=json", "--local", local, *options, "--", PYTHON, "-c",
                                             TOOLS + code + "os._exit(0)\n")
        self.assertEqual((status, output), (0, ""), error)
        return json.loads(error.splitlines()[-1])["in_use_peak_bytes"] / MIB

    def test_reserved_memory_has_the_expected_contents(self):
        for faults in ("keeper", "self"):
            for local, mib in (("8M", 96), ("36M", 160)) * SOAK:  # with more local memory, whole blocks come
                with self.subTest(faults=faults, local=local):
                    seed = random.SystemRandom().randrange(1 << 32)
                    status, output, error = self.run_job("far", "--faults", faults, "--stats=json", "--local", local,
                                                         "--", RESERVATIONS, seed, 2, 200, mib)
                    self.assertEqual((status, output), (0, "ok\n"), f"seed {seed}: {error}")
                    self.assertGreater(json.loads(error.splitlines()[-1])["bytes_out"], 1 << 20)

    def test_large_parts_that_are_opened_to_read_and_write_are_far(self):
        for faults in ("keeper", "self"):
            for how, (in_use, code) in OPENED.items():
                with self.subTest(how=how, faults=faults):
                    self.assertAlmostEqual(self.run_python(code, "--faults", faults), in_use, delta=0.99)

    def test_pages_beside_reserved_ones_leave(self):
        for faults in ("keeper", "self"):
            for how, code in NEIGHBOURS.items():
                with self.subTest(how=how, faults=faults):
                    in_use = self.run_python(code + PRESSURE, "--faults", faults, local="40M")  # whole blocks come
                    self.assertGreaterEqual(in_use, 96)

    def test_reservations_leave_room_for_allocations(self):
        self.assertAlmostEqual(self.run_python(TOO_LARGE), 24, delta=0.99)


class ReservationsOfAnOrdinaryUser(Reservations):
    user = NOBODY


if __name__ == "__main__":
    unittest.main()
