#!/usr/bin/env python3
"""Compiles each program of tests/wrong_programs twice. With -DWRONG the compiler must refuse it with the message that
the program names. Without -DWRONG it must compile.

    wrong_programs.py SOURCE_DIRECTORY

CXX names the compiler. Each program has a line `// error: TEXT`; TEXT must be part of the compiler's errors.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-fsyntax-only"]


def compile_program(compiler, includes, program, *defines):
    command = [*compiler, *FLAGS, *(f"-I{path}" for path in includes), *defines, str(program)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})


def expected_error(program):
    found = re.search(r"^// error: (.+)$", program.read_text(), re.MULTILINE)
    return found.group(1) if found else None


def problem_of(compiler, includes, program):
    """Returns how the test of `program` failed, or None."""
    expected = expected_error(program)
    if expected is None:
        return f"{program.name}: has no line `// error: TEXT`"
    right = compile_program(compiler, includes, program)
    if right.returncode != 0:
        return f"{program.name}: the corrected program does not compile:\n{right.stderr}"
    wrong = compile_program(compiler, includes, program, "-DWRONG")
    if wrong.returncode == 0:
        return f"{program.name}: the wrong program compiles"
    errors = [line for line in wrong.stderr.splitlines() if "error: " in line]
    if not any(expected in line for line in errors):
        return f"{program.name}: no error says `{expected}`:\n{wrong.stderr}"
    return None


def main():
    root = pathlib.Path(sys.argv[1])
    compiler = os.environ.get("CXX", "g++").split()
    programs = sorted((root / "tests" / "wrong_programs").glob("*.cpp"))
    with tempfile.TemporaryDirectory() as directory:
        # The precompiled header serves all programs: the compiler finds it before the header itself.
        (pathlib.Path(directory) / "tonari").mkdir()
        compiled = pathlib.Path(directory) / "tonari" / "tonari.hpp.gch"
        header = root / "include" / "tonari" / "tonari.hpp"
        subprocess.run([*compiler, *FLAGS[:-1], "-w", f"-I{root / 'include'}", "-x", "c++-header", str(header),
                        "-o", str(compiled)], check=True)
        includes = [directory, root / "include"]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            problems = [each for each in pool.map(lambda program: problem_of(compiler, includes, program), programs)
                        if each]
    print("\n".join(problems) or f"{len(programs)} wrong programs are refused, and compile when corrected")
    return 1 if problems or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
