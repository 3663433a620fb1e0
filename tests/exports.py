#!/usr/bin/env python3
"""Checks that libtonari.so exports the entire public interface and nothing else.

Usage: exports.py CXX INCLUDE_DIR LIBRARY.so ARCHIVE.a OBJECT...

The archive has all functions of the library. The library must export each function that a public class declares. It
must also export each function that the OBJECTs use, which are programs that include public headers only. A public
header must declare each exported function.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# Constructors and destructors: a declaration is mangled with C4 or D4, the definitions with C1, C2, D0, D1 and D2.
VARIANT = re.compile(r"(?<=[CD])[0-4](?=[EI])")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(*command):
    """Returns the mangled names of tonari's functions and objects in the lines of nm that have a type letter."""
    lines = (line.split() for line in run(*command).splitlines())
    return {(words[-2], words[-1].split("@")[0]) for words in lines if len(words) >= 2 and len(words[-2]) == 1}


def names(*command, types):
    return {name for kind, name in symbols(*command) if kind in types and re.match(r"_ZNK?6tonari", name)}


def declared_members(cxx, include):
    """Returns the mangled names, with C4 and D4, of the member functions that the public headers declare."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "headers.cpp")
        headers = sorted(path.name for path in pathlib.Path(include, "tonari").glob("*.hpp"))
        source.write_text("".join(f"#include <tonari/{name}>\n" for name in headers))
        keep = ["-fno-eliminate-unused-debug-symbols", "-fno-eliminate-unused-debug-types"]
        run(cxx, "-std=c++20", "-g", *keep, f"-I{include}", "-c", str(source), "-o", f"{folder}/headers.o")
        text = run("readelf", "--debug-dump=info", f"{folder}/headers.o")
    return set(re.findall(r"DW_AT_linkage_name.*: *(_ZNK?6tonari\S+)", text))


def demangled(mangled):
    return run("c++filt", *sorted(mangled)).splitlines() if mangled else []


def main():
    cxx, include, library, archive, *objects = sys.argv[1:]
    # Symbols of the version TONARI_PRIVATE are for the fronts, which are built together with the library.
    private = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", library).splitlines()
               if "@@TONARI_PRIVATE_" in line}
    exported = names("nm", "-D", "--defined-only", library, types="TWVBDRu") - private
    defined = names("nm", "--defined-only", archive, types="TBDR")
    declared = declared_members(cxx, include)

    required = {name for name in defined if VARIANT.sub("4", name) in declared}
    required |= names("nm", "--undefined-only", *objects, types="U") & defined
    words = set(re.findall(r"\w+", "".join(path.read_text() for path in pathlib.Path(include).rglob("*.h*"))))

    problems = [f"not exported, although public: {name}" for name in demangled(required - exported)]
    for name in demangled(exported):
        path = re.sub(r"\[abi:\w+\]|[(<].*", "", name).split("::")
        if not set(re.findall(r"\w+", " ".join(path))) <= words:
            problems.append(f"exported, although in no public header: {name}")
    print("\n".join(problems) or f"{len(exported)} names are exported, as the public headers declare")
    if problems:
        print("src/exports.map says what is exported")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
