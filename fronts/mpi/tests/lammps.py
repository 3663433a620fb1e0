#!/usr/bin/env python3
"""Builds LAMMPS with tonari's mpicxx, runs three of its benchmarks for a few steps, and compares them with Open MPI's.

Usage: lammps.py TONARI RANKS. Exits with 77 if LAMMPS has not been fetched, or Open MPI is not installed.
"""

import re
import shutil
import sys
import tempfile

import projects

# A liquid, chains of molecules, and a protein with long-range forces (many small messages, FFTs in parallel).
STEPS = {"in.lj": 100, "in.chain": 100, "in.rhodo": 20}


def recipe(folder, mpi):
    source = folder / "src"
    for package in ("molecule", "kspace", "rigid"):
        projects.shell(source, "make", f"yes-{package}")
    projects.shell(source, "make", "-j2", "mpi", f"CC={mpi.cxx}", f"LINK={mpi.cxx}", "CCFLAGS=-O1 -std=c++11 -w",
                   "LINKFLAGS=-O1", "LMP_INC=-DLAMMPS_MEMALIGN=64")
    shutil.rmtree(source / "Obj_mpi")


def thermo(output):
    """Returns the lines that LAMMPS prints about the state of the system: step, temperature, energies, pressure."""
    number = r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?"
    return re.findall(rf"^ *\d+(?: +{number}){{5}} *$|^(?:TotEng|PotEng|E_\w+).*=.*$", output, re.MULTILINE)


def states(mpi, name, ranks):
    program = projects.built("lammps", mpi, recipe)
    with tempfile.TemporaryDirectory() as folder:
        work = shutil.copytree(program / "bench", f"{folder}/bench", ignore=shutil.ignore_patterns("POTENTIALS"))
        with open(f"{work}/{name}", encoding="utf-8") as file:
            text = re.sub(r"^run\s+\d+", f"thermo 5\nrun {STEPS[name]}", file.read(), flags=re.MULTILINE)
        with open(f"{work}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
        output = mpi.run(ranks, [program / "src" / "lmp_mpi", "-in", name], work, seconds=1200)
    return thermo(output), output


def main():
    ranks = int(sys.argv[2])
    here = projects.tonari(sys.argv[1])
    projects.require("lammps")
    other = projects.open_mpi()
    if other is None:
        sys.exit(77)
    for name, steps in STEPS.items():
        ours, output = states(here, name, ranks)
        if len(ours) < steps // 5 + 1:
            sys.exit(f"{name} must print {steps // 5 + 1} states:\n{output}")
        theirs = states(other, name, ranks)[0]
        different = [f"  {mine}\n  {their}" for mine, their in zip(ours, theirs) if mine != their]
        if different or len(ours) != len(theirs):
            sys.exit(f"{name} with {ranks} ranks: {len(ours)} states, {len(theirs)} with Open MPI; different ones:\n" +
                     "\n".join(different))
        print(f"{name} with {ranks} ranks: {len(ours)} lines are equal to Open MPI's", flush=True)


if __name__ == "__main__":
    main()
