#!/usr/bin/env python3
"""Builds NetPIPE with tonari's mpicc; two ranks exchange messages of growing sizes, and it checks what has arrived.

Usage: netpipe.py TONARI. Exits with 77 if `scripts/setup mpi` has not fetched NetPIPE.
"""

import re
import sys
import tempfile

import projects

LARGEST = 2_500_000
REPETITIONS = 100
# NetPIPE's sizes are one more than the powers of two and than the middles between them.
SIZES = sorted(size + 1 for power in range(2, 22) for size in (2**power, 3 * 2**(power - 1)) if 4 <= size < LARGEST)

WAYS = {
    "plain": [],
    "receives posted early": ["-a"],
    "synchronous": ["-S"],
    "from any source": ["-z"],
    "both directions": ["-2", "-a"],
    "one direction": ["-s"],
    "buffers out of the cache": ["-I", "-a"],
    "unaligned buffers": ["-O", "3,5"],
}


def recipe(folder, mpi):
    for program, options in (("NPmpi", []), ("NPbsend", ["-DBSEND"])):
        projects.shell(folder, mpi.cc, "-O1", "-w", "-DMPI", *options, "-Isrc", "src/netpipe.c", "src/mpi.c", "-o", program)


def check(mpi, program, ways, what):
    with tempfile.TemporaryDirectory() as folder:
        output = mpi.run(2, [program, "-i", "-u", LARGEST, "-n", REPETITIONS, *ways], folder)
    passed = re.findall(r"^ *\d+: +(\d+) bytes +\d+ times --> +Integrity check passed$", output, re.MULTILINE)
    sizes = [int(size) for size in passed]
    if sizes != SIZES:
        sys.exit(f"NetPIPE, {what}: the integrity check must pass for {SIZES}, and did for {sizes}:\n{output}")
    print(f"NetPIPE, {what}: {len(sizes)} sizes up to {sizes[-1]} bytes are right", flush=True)


def main():
    folder = projects.built("netpipe", projects.tonari(sys.argv[1]), recipe)
    here = projects.tonari(sys.argv[1])
    for what, ways in WAYS.items():
        check(here, folder / "NPmpi", ways, what)
    check(here, folder / "NPbsend", [], "buffered")
    between_hosts = projects.tonari(sys.argv[1], "--apart", "network")
    for what in ("plain", "both directions"):
        check(between_hosts, folder / "NPmpi", WAYS[what], f"{what}, as between hosts")


if __name__ == "__main__":
    main()
