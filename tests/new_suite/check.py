#!/usr/bin/env python3
"""Checks that a new folder is enough to add a benchmark: copies a benchmark, and builds, lists and runs the copy.

Usage: check.py SOURCE BUILD FOLDER LIBTONARI LIBCOMMANDS CMAKE_ARGUMENT...
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

COPIED = "allreduce"
NAME = "brand_new"


def make_suites(source, folder):
    """Checks that the copy and the original can be compiled into the same programs."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source / COPIED, folder / COPIED)
    (folder / NAME).mkdir(parents=True)
    for path in (source / COPIED).iterdir():
        if path.suffix in (".hpp", ".cpp"):
            (folder / NAME / path.name).write_text(re.sub(rf"\b{COPIED}\b", NAME, path.read_text()))


def run(*command):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def main():
    source, build, folder, library, commands = map(pathlib.Path, sys.argv[1:6])
    make_suites(source / "bench" / "suites", folder / "suites")
    here = folder / "build"
    run("cmake", "-G", "Ninja", "-S", source / "tests" / "new_suite", "-B", here, f"-DTONARI_SOURCE={source}",
        f"-DTONARI_SUITES={folder / 'suites'}", f"-DTONARI_LIBRARY={library}", f"-DTONARI_COMMANDS={commands}",
        *sys.argv[6:])
    run("cmake", "--build", here, "--target", "bench_driver", "bench_worker")
    (here / "bin").mkdir(exist_ok=True)
    command = here / "bin" / "tonari"
    command.unlink(missing_ok=True)
    command.symlink_to(build / "bin" / "tonari")

    bench = here / "libexec" / "tonari" / "bench"
    listed = re.findall(r"(?m)^  (\w+) ", run(bench, "bench"))
    if listed != [COPIED, NAME]:
        sys.exit(f"listed are {listed}, not {[COPIED, NAME]}")
    run(bench, "bench", NAME, "--quick", "--ranks", "2", "--sizes", "8", "--json", folder / "report.json")
    report = json.loads((folder / "report.json").read_text())
    if report["benchmark"] != NAME or not report["series"]:
        sys.exit(f"{NAME} measured nothing: {report}")


if __name__ == "__main__":
    main()
