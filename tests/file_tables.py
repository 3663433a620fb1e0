#!/usr/bin/env python3
"""Checks that each module page, docs/modules/NAME.md, names every file of its folder once, and no other.

A page's files are in the first column of the tables under its heading "Files", each between backquotes, relative to
the page's folder (src/NAME) or to src. `ring.{hpp,cpp}` names two files. A deeper heading that ends with a folder
between backquotes, "### `locks/`", is the folder of the tables below it.

Usage: file_tables.py ROOT. Prints one line per fault; exits with 1 if there are any.
"""

import pathlib
import re
import sys

# Pages whose folders are not src/NAME; "bench" and "fronts" are folders beside src. A file belongs to the page with the longest
# folder that contains it.
FOLDERS = {
    "checkpoint": ["share/checkpoint"],
    "guarded": ["share/guarded"],
    "measure": ["bench"],
    "mpi": ["fronts/mpi"],
    "pager": ["pager", "preload"],
}

NOT_LISTED = {"CMakeLists.txt"}
# Each benchmark has the same files; a test needs no description beside its own.
NOT_DESCRIBED = ("bench/suites/", "fronts/mpi/tests/")


def folders_of(page):
    return FOLDERS.get(page, [page])


def shown_folder(name):
    return name if name.startswith(("bench", "fronts")) else f"src/{name}"


def expanded(name):
    """Returns the files that a name such as `ring.{hpp,cpp}` stands for."""
    found = re.fullmatch(r"(.*)\{([^{}]*)\}(.*)", name)
    return [found[1] + part.strip() + found[3] for part in found[2].split(",")] if found else [name]


def rows(text):
    """Yields (line number, names) for each row of the tables under "Files"; names is None for the heading itself."""
    level, folder = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if heading := re.match(r"(#+)\s+(.*?)\s*$", line):
            if level and len(heading[1]) <= level:
                level = 0
            if heading[2] == "Files":
                level, folder = len(heading[1]), ""
                yield number, None
            elif level:
                inside = re.search(r"`([^`]+/)`$", heading[2])
                folder = inside[1] if inside else folder
        elif level and line.startswith("|"):
            first = line.strip("|").split("|")[0]
            yield number, [folder + name for span in re.findall(r"`([^`]+)`", first) for name in expanded(span)]


def files_by_page(root, pages):
    """Returns the files of each page, relative to src."""
    by_page = {page: set() for page in pages}
    owners = sorted(((folder, page) for page in pages for folder in folders_of(page)), key=lambda pair: -len(pair[0]))
    paths = [(path, root / "src") for path in (root / "src").rglob("*")]
    paths += [(path, root) for beside in ("bench", "fronts") for path in (root / beside).rglob("*")]
    for path, top in paths:
        name = path.relative_to(top).as_posix()
        if name.startswith(NOT_DESCRIBED):
            continue
        owner = next((page for folder, page in owners if name.startswith(folder + "/")), None)
        if owner and path.is_file() and path.name not in NOT_LISTED and "__pycache__" not in name:
            by_page[owner].add(name)
    return by_page


def faults_of(page, files, text):
    """Yields one line for each file that the page's tables omit or name twice, and for each name without a file."""
    shown, named, has_table = f"docs/modules/{page}.md", {}, False
    for number, names in rows(text):
        if names is None:
            has_table = True
            continue
        for name in names:
            known = [full for full in [*(f"{folder}/{name}" for folder in folders_of(page)), name] if full in files]
            if not known:
                yield f"{shown}:{number}: `{name}` is no file of {', '.join(map(shown_folder, folders_of(page)))}"
            elif known[0] in named:
                yield f"{shown}:{number}: `{name}` is named in line {named[known[0]]} already"
            else:
                named[known[0]] = number
    if has_table:
        for name in sorted(files - set(named)):
            yield f'{shown}: {shown_folder(name)} is missing in the tables under "Files"'
    else:
        yield f'{shown}: has no heading "Files"'


def faults(root):
    texts = {path.stem: path.read_text() for path in sorted((root / "docs/modules").glob("*.md"))}
    for page, files in files_by_page(root, texts).items():
        if not files:
            yield f"docs/modules/{page}.md: has no folder {' or '.join(map(shown_folder, folders_of(page)))}"
        else:
            yield from faults_of(page, files, texts[page])


def main():
    found = list(faults(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "every module page names the files of its folder")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
