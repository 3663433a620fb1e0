#!/usr/bin/env python3
"""Checks references to documents and in documents: relative links of every Markdown file and the files that it names
(`src/...`, `tests/...`), every NAME.md that any file of the repository mentions, and each `file: function` of
ARCHITECTURE.md.

`message/send.cpp: MessageRuntime::send_fast` names a file, relative to the root or to src, and a function in it. A link
leads to a file or a folder. A `#heading` after it is not checked.

Usage: documents.py ROOT. Prints one line per fault; exits with 1 if there are any.
"""

import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)[^)\s]*\)")
STEP = re.compile(r"(?P<file>[\w./-]+\.[chp]+): (?P<functions>(?:~?\w+(?:::)?)+(?:, (?:~?\w+(?:::)?)+)*)")
TEXT_OF_LINK = re.compile(r"\[[^\]]*\]\(")
MENTION = re.compile(r"(?<![\w./-])(?:[\w.-]+/)*[\w-]+\.md\b")
PATH = re.compile(r"`((?:src|include|bench|tests|examples|scripts|docs|cmake)/[\w./-]+)`")
SKIPPED = {"build", ".git", "__pycache__"}
PLACEHOLDER = "NAME"  # stands for any name
WRITTEN = {"papers.md"}  # by commands of the user


def documents(root):
    return sorted(path for path in root.rglob("*.md") if not SKIPPED & set(path.relative_to(root).parts))


def without_code(text):
    """Returns `text` without fenced code and code spans, with the same number of lines."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def broken_links(root):
    for path in documents(root):
        for number, line in enumerate(without_code(path.read_text()).split("\n"), 1):
            for target in LINK.findall(line):
                if "://" not in target and not target.startswith("mailto:") and not (path.parent / target).exists():
                    yield f"{path.relative_to(root)}:{number}: the link to {target} leads nowhere"


def missing_files(root):
    for path in documents(root):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            for name in PATH.findall(line):
                if PLACEHOLDER not in name and not (root / name).exists():
                    yield f"{path.relative_to(root)}:{number}: there is no {name}"


def text_of(path):
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""


def unknown_documents(root):
    """Yields a fault for each document that is neither in the repository's root nor beside the file that names it."""
    for path in sorted(root.rglob("*")):
        shown = path.relative_to(root)
        if SKIPPED & set(shown.parts) or path.name.endswith("_test.py") or not path.is_file():
            continue
        for number, line in enumerate(text_of(path).split("\n"), 1):
            for name in MENTION.findall(TEXT_OF_LINK.sub("(", line)):
                if PLACEHOLDER in name or name in WRITTEN:
                    continue
                if not (root / name).exists() and not (path.parent / name).exists():
                    yield f"{shown}:{number}: {name} is no document of this repository"


def has_function(text, function):
    """Returns whether a file's text defines or declares `function`. In Class::name, the class must exist, too."""
    *scopes, name = function.split("::")
    member_of = rf"{re.escape(scopes[-1])}(?:<\w+>)?::" if scopes else ""  # a class or a class template
    if re.search(rf"(?<!\w){member_of}{re.escape(name)}\s*\(", text):
        return True
    scope = re.search(rf"\b(?:class|struct)\s+(?:\[\[\w+\]\]\s+)?{scopes[-1]}\b", text) if scopes else None
    return scope is not None and re.search(rf"(?<![\w:]){re.escape(name)}\s*\(", text) is not None


def unknown_functions(root):
    page = root / "ARCHITECTURE.md"
    lines = page.read_text().split("\n") if page.exists() else []
    for number, line in enumerate(lines, 1):
        for step in STEP.finditer(line):
            path = next((path for path in (root / step["file"], root / "src" / step["file"]) if path.is_file()), None)
            if path is None:
                yield f"ARCHITECTURE.md:{number}: there is no file {step['file']}"
                continue
            text = path.read_text()
            for function in step["functions"].split(", "):
                if not has_function(text, function):
                    yield f"ARCHITECTURE.md:{number}: {step['file']} has no function {function}"


def faults(root):
    yield from broken_links(root)
    yield from missing_files(root)
    yield from unknown_documents(root)
    yield from unknown_functions(root)


def main():
    found = list(faults(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "every link and every function that the documents name exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
