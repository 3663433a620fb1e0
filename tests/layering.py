#!/usr/bin/env python3
"""Checks that folders include only the folders that the table in docs/design.md, "The house", allows.

Usage: layering.py ROOT. Prints one line per violation; exits with 1 if there are any.
"""

import pathlib
import re
import sys

BELOW = {
    "base": [],
    "job": ["base"],
    "fabric": ["base", "job"],
    "window": ["base", "job", "fabric"],
    "message": ["base", "job", "fabric"],
    "pager": ["base"],
    "preload": ["pager"],
    "share": ["base", "job", "fabric", "window", "message", "pager", "preload"],
    "far": ["base", "job", "fabric", "window", "message", "pager", "preload"],
    "cli": ["base", "job", "fabric", "window", "message", "pager", "share", "far"],
}

# The folders of fronts/, each with the folders of src that it may include. No front may include another.
FRONTS = {
    "mpi": ["base", "job", "fabric", "window", "message"],
}
GENERATED = {"functions.hpp", "names.hpp", "unsupported.hpp"}

# The folders of bench/, each with the folders of bench/ that it may include. The driver, predict and report may also
# include all folders of src. The other folders run in the ranks and may include all folders of src except cli.
BENCH_BELOW = {
    "harness": [],
    "wires": ["harness"],
    "kernels": ["harness", "wires"],
    "micro": ["harness", "wires"],
    "hot_paths": ["kernels"],
    "driver": [],
    "predict": ["driver"],
    "report": ["driver"],
}
MAIN = pathlib.PurePath("driver/main.cpp")  # joins the commands of the driver, of predict and of report
# Files of a benchmark, bench/suites/NAME/, that have special rules.
QUESTION = "question.cpp"  # belongs to the driver
FAR_PROGRAM = "far.cpp"  # must not use tonari

# The folder that implements each public header. Code that may include the folder may include the header.
PUBLIC = {
    "status.hpp": "base",
    "rank.hpp": "base",
    "result.hpp": "base",
    "transferable.hpp": "message",
    "job.hpp": "job",
    "address.hpp": "window",
    "queue.hpp": "window",
    "window.hpp": "window",
    "window_part.hpp": "window",
    "layout.hpp": "message",
    "message.hpp": "message",
    "request.hpp": "message",
    "checkpoint.hpp": "share",
    "share.hpp": "share",
    "shared_heap.hpp": "share",
    "shared_matrix.hpp": "share",
    "shared_reduce.hpp": "share",
    "guarded.hpp": "share",
    "far.h": "far",
    "far.hpp": "far",
    "tonari.hpp": "cli",
}

INCLUDE = re.compile(r'\s*#\s*include\b\s*(?:"(?P<ours>[^"]+)"|<(?P<other>[^>]+)>)?')
# The last alternative is the error message in status.hpp.
STANDARD = re.compile(r"[a-z_0-9]+|std(def|int|bool)\.h|tonari needs C\+\+20")
CODE = {".c", ".h", ".cpp", ".hpp"}


def includes(path):
    """Yields (line number, text between quotes or None, text between angle brackets or None)."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match["ours"], match["other"]


def code_files(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in CODE)


def wrong_public(folder, name):
    """Returns why code of `folder` may not include <tonari/NAME>, or None if it may."""
    owner = PUBLIC.get(name)
    if owner is None:
        return f"<tonari/{name}> has no folder in this checker's table"
    if owner != folder and owner not in (FRONTS[folder] if folder in FRONTS else BELOW[folder]):
        return f"{folder} may not include <tonari/{name}>, which is {owner}'s"
    return None


def wrong_in_source(folder, ours, other):
    if ours in GENERATED:
        return None
    if ours is not None:
        target, _, rest = ours.partition("/")
        if not rest or target not in BELOW:
            return f'"{ours}" must be written "FOLDER/name.hpp" with a folder of src'
        if target != folder and target not in BELOW[folder]:
            return f'{folder} may not include "{ours}": {target} is not below it'
        return None
    if other is None:
        return "an include must name its file"
    return wrong_public(folder, other[len("tonari/"):]) if other.startswith("tonari/") else None


def wrong_in_front(front, is_test, ours, other):
    if ours is None:
        return wrong_public(front, other[len("tonari/"):]) if other and other.startswith("tonari/") else None
    target, _, rest = ours.partition("/")
    if ours in GENERATED or ours == "mpi.h" or is_test or (target == front and rest):
        return None
    if target not in FRONTS[front]:
        return f'fronts/{front} may not include "{ours}": {target} is not below it'
    return None


def wrong_in_bench(path, ours):
    """Returns why the file bench/PATH may not include `ours`, or None if it may."""
    if ours is None:
        return None
    folder = path.parts[0]
    target, _, rest = ours.partition("/")
    if not rest:
        return None if folder == "suites" else f'"{ours}" must be written "FOLDER/name.hpp"'
    if target == "suites":
        return f'"{ours}": a benchmark is used by no other file; what several share is in bench/kernels'
    is_driver = folder in ("driver", "predict", "report") or path.name == QUESTION
    if path.name == FAR_PROGRAM:
        below = ["harness"]
    elif path == MAIN:
        below = ["driver", "predict", "report"]
    elif folder == "suites":
        below = ["driver"] if is_driver else ["harness", "wires", "kernels"]
    else:
        below = [folder, *BENCH_BELOW[folder]]
    if target in BENCH_BELOW:
        return None if target in below else f'bench/{path} may not include "{ours}": {target} is not below it'
    if target not in BELOW or ".." in ours:
        return f'"{ours}" must be written "FOLDER/name.hpp" with a folder of bench or of src'
    if path.name == FAR_PROGRAM or (target == "cli" and not is_driver):
        return f'bench/{path} may not include "{ours}"'
    return None


def wrong_in_public(folder, ours, other):
    if other is None:
        return f'a public header may not include "{ours}"'
    if other.startswith("tonari/"):
        return wrong_public(folder, other[len("tonari/"):])
    if STANDARD.fullmatch(other):
        return None
    return f"a public header may not include <{other}>: neither ours nor standard"


def wrong_in_example(ours, other):
    if other is not None and (other.startswith("tonari/") or STANDARD.fullmatch(other)):
        return None
    return f"an example may include <tonari/...> and standard headers only, not {ours or other}"


def violations(root):
    """Yields one line for each forbidden include."""
    for path in code_files(root / "src"):
        folder = path.relative_to(root / "src").parts[0]
        if folder not in BELOW:
            yield f"{path.relative_to(root)}: src has no folder of that name in this checker's table"
            continue
        for number, ours, other in includes(path):
            if why := wrong_in_source(folder, ours, other):
                yield f"{path.relative_to(root)}:{number}: {why}"
    for path in code_files(root / "fronts"):
        front = path.relative_to(root / "fronts").parts[0]
        if front not in FRONTS:
            yield f"{path.relative_to(root)}: fronts has no folder of that name in this checker's table"
            continue
        is_test = "tests" in path.relative_to(root).parts
        for number, ours, other in includes(path):
            if why := wrong_in_front(front, is_test, ours, other):
                yield f"{path.relative_to(root)}:{number}: {why}"
    for path in code_files(root / "include"):
        folder = PUBLIC.get(path.name)
        if folder is None:
            yield f"{path.relative_to(root)}: this public header has no folder in this checker's table"
            continue
        for number, ours, other in includes(path):
            if why := wrong_in_public(folder, ours, other):
                yield f"{path.relative_to(root)}:{number}: {why}"
    for path in code_files(root / "bench"):
        inside = path.relative_to(root / "bench")
        if inside.parts[0] != "suites" and inside.parts[0] not in BENCH_BELOW:
            yield f"{path.relative_to(root)}: bench has no folder of that name in this checker's table"
            continue
        for number, ours, _ in includes(path):
            if why := wrong_in_bench(inside, ours):
                yield f"{path.relative_to(root)}:{number}: {why}"
    for path in code_files(root / "examples"):
        for number, ours, other in includes(path):
            if why := wrong_in_example(ours, other):
                yield f"{path.relative_to(root)}:{number}: {why}"


def main():
    found = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "every include is allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
