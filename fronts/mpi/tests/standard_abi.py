#!/usr/bin/env python3
"""Compares mpi.h and libmpi_abi.so.1 with the ones of MPICH, which `scripts/setup mpi` fetches.

Usage: standard_abi.py HEADER_FOLDER LIBRARY FUNCTIONS_TABLE. Exits with 77 if MPICH's are not there.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tonari" / "mpi"
MPICH = CACHE / "mpich" / "mpich-5.0.2.data" / "data"

# MPICH exports functions that MPI 3.0 removed. The standard ABI does not have them.
REMOVED = {"MPI_Address", "MPI_Errhandler_create", "MPI_Errhandler_get", "MPI_Errhandler_set", "MPI_Type_extent",
           "MPI_Type_hindexed", "MPI_Type_hvector", "MPI_Type_lb", "MPI_Type_struct", "MPI_Type_ub"}
# MPICH exports symbols of its own. The standard ABI does not have them.
OF_MPICH = ("MPII_", "MPIR_", "MPIX_", "PMPIX_", "QMPI_")
# MPICH 5.0.2 declares the count of these as MPI_Count, and has no twins with large counts. The standard has them.
ADDED = {"MPI_Psend_init_c", "MPI_Precv_init_c"}
DIFFERENT = {"MPI_Psend_init", "MPI_Precv_init"}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """Returns the names of MPI's functions in a library, and of their PMPI twins."""
    names = re.findall(r" [TW] (P?MPI_\w+)", run("nm", "-D", "--defined-only", library))
    return {name for name in names if not name.startswith(("MPIX", "PMPIX"))}


def with_twins(names):
    return names | {"P" + name for name in names}


def constants(header):
    """Returns the names of the macros and enumerators of a header that are numbers or addresses."""
    text = header.read_text()
    macros = re.findall(r"^#define (MPI_\w+)[ \t]+\S", text, re.MULTILINE)
    enumerators = re.findall(r"^\s+(MPI_\w+)\s*=", text, re.MULTILINE)
    skipped = re.compile(r"MPI_ABI_(Aint|Offset|Count)")
    return {name for name in macros + enumerators if not skipped.fullmatch(name)}


def prototypes(header):
    """Returns the declarations of a header's functions, by name."""
    return {name: declaration for declaration, name in
            re.findall(r"^((?:int|double|MPI_\w+) (P?MPI_\w+)\([^;]*\);)", header.read_text(), re.MULTILINE)}


class StandardAbi(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def compile(self, text, name, *options):
        source = pathlib.Path(self.folder.name, f"{name}.c")
        source.write_text(text)
        result = subprocess.run(["cc", "-std=c11", "-w", *options, str(source), "-o", str(source.with_suffix(""))],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return str(source.with_suffix(""))

    def values(self, header, names):
        lines = "".join(f'  printf("{name} %lld\\n", (long long)({name}));\n' for name in sorted(names))
        text = f'#include "{header}"\n#include <stdio.h>\nint main(void) {{\n{lines}}}\n'
        return run(self.compile(text, header.stem))

    def test_the_library_exports_every_function_twice(self):
        theirs = exported(MPICH / "lib" / "libmpi_abi.so.1")
        ours = exported(LIBRARY)
        self.assertEqual(ours - theirs, with_twins(ADDED))
        self.assertEqual(theirs - ours, {name for name in with_twins(REMOVED) if name in theirs})
        self.assertEqual(len(ours), 2 * 664)

    def test_constants_are_equal(self):
        names = constants(OUR_HEADER)
        self.assertEqual(names, constants(THEIR_HEADER))
        self.assertEqual(self.values(OUR_HEADER, names), self.values(THEIR_HEADER, names))

    def test_prototypes_are_compatible(self):
        ours = prototypes(OUR_HEADER)
        theirs = prototypes(THEIR_HEADER)
        same = [name for name in ours if name in theirs and name not in with_twins(DIFFERENT)]
        self.assertGreater(len(same), 1300)
        text = f'#include "{THEIR_HEADER}"\n' + "\n".join(ours[name] for name in same)
        self.compile(text, "prototypes", "-c")

    @unittest.skipIf(shutil.which("abidiff") is None, "abidiff is not installed: scripts/setup mpi")
    def test_abidiff_finds_no_other_change(self):
        # MPICH's library has no debug information, so abidiff compares the names and kinds of symbols.
        result = subprocess.run(["abidiff", str(MPICH / "lib" / "libmpi_abi.so.1"), LIBRARY],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode & 0b11, 0, result.stderr)  # no error, no wrong use
        report = result.stdout
        for kind in ("Functions", "Variables"):
            self.assertRegex(report, rf"{kind} changes summary: 0 Removed, 0 Changed\b")
        # One line for the functions that are aliases: PMPI_X is followed by {PMPI_X, aliases MPI_X}.
        names = lambda mark: set(re.findall(rf"^ *\[{mark}\] .*?\b(\w+)(?:\}}|, aliases.*)?$", report, re.MULTILINE))
        removed = {name for name in names("D") if not name.startswith(OF_MPICH)}
        self.assertEqual({name.removeprefix("P") for name in removed}, REMOVED)
        self.assertEqual({name.removeprefix("P") for name in names("A")}, ADDED)

    def test_the_header_compiles_alone_as_c_and_as_cpp(self):
        pragma = "#pragma GCC system_header"  # it would hide the warnings that this test looks for
        text = OUR_HEADER.read_text()
        self.assertEqual(text.count(pragma), 1)
        for compiler, language, strict in (("cc", "c", "-Wstrict-prototypes"), ("c++", "c++", "-Wextra")):
            done = subprocess.run([compiler, "-Wall", "-Wextra", strict, "-Werror", "-fsyntax-only", "-x", language, "-"],
                                  input=text.replace(pragma, ""), capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    OUR_HEADER = pathlib.Path(sys.argv[1], "mpi.h").resolve()
    LIBRARY = sys.argv[2]
    THEIR_HEADER = MPICH / "include" / "mpi_abi.h"
    if not THEIR_HEADER.exists():
        print("MPICH's library is not there: scripts/setup mpi fetches it")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], "-v"])
