#!/usr/bin/env python3
"""Builds the HPC Challenge benchmark with tonari's mpicc, runs it on small data, and compares its results with Open MPI's.

Usage: hpcc.py TONARI RANKS. Exits with 77 if `scripts/setup mpi` has not fetched HPCC. Without Open MPI, only HPCC's own
checks are looked at.
"""

import re
import shutil
import sys
import tempfile

import projects

MAKEFILE = """
SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir -p
RM = rm -f
TOUCH = touch
ARCH = $(arch)
TOPdir = ../../..
INCdir = $(TOPdir)/include
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
HPL_DEFS = -DHPL_CALL_CBLAS -I$(INCdir)
HPL_LIBS = $(HPLlib) -lopenblas -lm
CCNOOPT = $(HPL_DEFS) -O0 -w
CCFLAGS = $(HPL_DEFS) -O2 -w
LINKER = $(CC)
ARCHIVER = ar
ARFLAGS = r
RANLIB = ranlib
"""

# Lines of _hpccinf.txt, the example of an input file, and what replaces their numbers: a small Linpack with all six ways
# to broadcast a panel, with and without lookahead.
INPUT = {6: "300", 8: "32", 22: "6", 23: "0 1 2 3 4 5", 24: "2", 25: "0 1"}

# Lines of HPCC's summary that depend on time. The last two name the fastest way to solve Linpack.
TIMES = re.compile(r"time|Time|flops|GUPs|GBs|GBytes|_usec|STREAM_(Copy|Scale|Add|Triad)|ExeUpdates|HPL_(ctop|depth)$")

RESIDUALS = "residuals of Linpack"


def recipe(folder, mpi):
    # MPI 3.0 has removed these two functions.
    source = folder / "hpl" / "src" / "comm" / "HPL_packL.c"
    source.write_text(source.read_text().replace("MPI_Address", "MPI_Get_address")
                      .replace("MPI_Type_struct", "MPI_Type_create_struct"))
    (folder / "hpl" / "Make.test").write_text(MAKEFILE)
    projects.shell(folder, "make", "-j2", "arch=test", f"CC={mpi.cc}")


def grid(ranks):
    rows = max(rows for rows in range(1, ranks + 1) if ranks % rows == 0 and rows * rows <= ranks)
    return rows, ranks // rows


def input_file(example, ranks):
    rows, columns = grid(ranks)
    lines = example.read_text().splitlines()
    for number, value in {**INPUT, 11: str(rows), 12: str(columns)}.items():
        lines[number - 1] = value + "  " + lines[number - 1]
    return "\n".join(lines) + "\n"


def results(mpi, ranks):
    """Returns what HPCC writes, and the results that do not depend on time."""
    program = projects.built("hpcc", mpi, recipe)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/hpccinf.txt", "w", encoding="utf-8") as file:
            file.write(input_file(program / "_hpccinf.txt", ranks))
        mpi.run(ranks, [program / "hpcc"], folder)
        with open(f"{folder}/hpccoutf.txt", encoding="utf-8") as file:
            output = file.read()
    summary = re.search(r"Begin of Summary section\.\n(.*)End of Summary section", output, re.DOTALL)
    lines = summary[1].splitlines() if summary else []
    values = {name: value for name, value in (line.split("=", 1) for line in lines) if not TIMES.search(name)}
    values[RESIDUALS] = re.findall(r"^\|\|Ax-b\|\|.*= *(\S+) \.+ PASSED$", output, re.MULTILINE)
    return output, values


def wrong(output, values, ranks):
    """Returns which of HPCC's own checks are wrong."""
    expected = {"Success": "1", "CommWorldProcs": str(ranks), "MPIRandomAccess_Errors": "0",
                "MPIRandomAccess_LCG_Errors": "0", "PTRANS_residual": "0"}
    found = [f"{name} must be {value}, is {values.get(name)}" for name, value in expected.items()
             if values.get(name) != value]
    if len(values[RESIDUALS]) != 12:
        found.append(f"12 solutions of Linpack must pass, and {len(values[RESIDUALS])} do")
    if float(values.get("MPIFFT_maxErr", 1)) > 1e-12:
        found.append(f"MPIFFT_maxErr is {values.get('MPIFFT_maxErr')}")
    return found + re.findall(r".*FAILED.*", output)


def compare(ours, theirs, what):
    different = [f"{name}: {ours.get(name)}, {what} {theirs.get(name)}" for name in sorted(ours | theirs)
                 if ours.get(name) != theirs.get(name)]
    if different:
        sys.exit(f"HPCC's results {what} differ:\n" + "\n".join(different))
    print(f"{len(ours)} results are the same {what}", flush=True)


def main():
    command, ranks = sys.argv[1], int(sys.argv[2])
    output, ours = results(projects.tonari(command), ranks)
    found = wrong(output, ours, ranks)
    if found:
        sys.exit(output + "\n".join(found))
    print(f"HPCC with {ranks} ranks: its checks pass", flush=True)
    compare(ours, results(projects.tonari(command, "--apart", "network"), ranks)[1], "as between hosts")
    other = projects.open_mpi()
    if other:
        compare(ours, results(other, ranks)[1], "with Open MPI")


if __name__ == "__main__":
    main()
