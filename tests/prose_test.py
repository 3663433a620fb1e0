#!/usr/bin/env python3
"""Tests scripts/prose on small files, with and without a planted fault."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def loaded():
    loader = importlib.machinery.SourceFileLoader("prose", str(ROOT / "scripts/prose"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("prose", loader))
    sys.modules["prose"] = module
    loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
prose = loaded()


def found(name, text):
    return [(line, rule) for line, rule, _, _ in prose.findings(pathlib.Path(name), text)]


class Prose(unittest.TestCase):
    def finds(self, name, text, *expected):
        self.assertEqual(found(name, text), list(expected), text)

    def accepts(self, name, text):
        self.finds(name, text)

    def test_headless_nouns_are_found(self):
        for sentence in ("Who leaves hands it on.", "The bytes go; who waits is woken.",
                         "It is done by who comes first.", "What is sent goes at once.",
                         "Each copy of what is long waits.", "Only those that wait are woken.",
                         "Of pages, two are kept.", "None waits.", "Those without a home are dropped.",
                         "He who asks waits.", "A rank sends what has changed.", "Whose turn it is waits."):
            self.finds("page.md", sentence, (1, "headless"))
            self.finds("code.cpp", "  // " + sentence, (1, "headless"))

    def test_questions_and_relative_clauses_are_english(self):
        for sentence in ("What is measured?", "Question: who waits for whom?", "The table shows what it costs.",
                         "A rank whose home died stops.", "The user who starts the job pays.", "Those pages stay.",
                         "None of the pages is lost.", "It depends on what the peer does.",
                         "In what order ranks come matters.",
                         "Of course it waits.", "By default it waits.", "**What it costs.** A message."):
            self.accepts("page.md", sentence)

    def test_a_comment_begins_with_a_verb_or_a_noun(self):
        for word in ("Of", "Those", "As", "By", "Who", "What", "Whose", "None", "That"):
            self.finds("code.hpp", f"/// {word} ranks of this host.\nint count;", (1, "headless"))
        self.accepts("code.hpp", "/// Number of ranks of this host.\nint count;\nint held_;  // by the holder\n")

    def test_words_of_other_rules_are_found(self):
        self.finds("code.cpp", "// Answers null.", (1, "answer"))
        self.finds("code.cpp", "// The peer lies.", (1, "lies"))
        self.finds("code.cpp", "// Sent to a far host.", (1, "far"))
        self.finds("code.cpp", "// Takes 3 us a page.", (1, "per"))
        self.finds("code.cpp", "// The holder of the baton polls.", (1, "retired"))
        self.accepts("code.cpp", "// Calls answer() and rings bell_. Far memory is so far away; it lies between two "
                                 "pages.")

    def test_a_sentence_is_counted_across_wrapped_lines(self):
        sentence = "word " * 40 + "`one span` last."
        lines = sentence.replace("word " * 20, "word " * 20 + "\n")
        self.finds("page.md", lines, (1, "long sentence"))
        self.finds("code.cpp", "// " + lines.replace("\n", "\n// "), (1, "long sentence"))
        self.finds("code.py", "# " + lines.replace("\n", "\n# "), (1, "long sentence"))
        self.accepts("page.md", "a " * 37 + "`span of several words`.")
        self.accepts("page.md", "a " * 30 + "end.\n\n" + "a " * 30 + "end.")
        self.accepts("page.md", "- " + "a " * 30 + "\n- " + "a " * 30)

    def test_a_long_line_is_found_outside_tables_and_code(self):
        line = "Some words. " * 9
        self.finds("page.md", line, (1, "long line"))
        self.accepts("page.md", f"| {line} | {line} |")
        self.accepts("page.md", f"```\n{line}\n```")
        self.accepts("page.md", f"Text.\n\n    {line}\n    {line}")
        self.accepts("code.cpp", f"// {line}")

    def test_a_paragraph_that_is_cut_off_is_found(self):
        cut_off = 2 * [(2, "cut off")]
        self.finds("page.md", "A request\nand a reply (see decision", *cut_off)
        self.finds("page.md", "A request\nand a reply, see", (2, "cut off"))
        self.finds("page.md", "A request\n(and a reply.", (2, "cut off"))
        self.finds("page.md", "- an item\n\nA paragraph", (3, "cut off"))
        self.accepts("page.md", "A request (and a [reply](page.md)).\n\n**Two:**\n\n1. an item (a\n   part)\n- one")
        self.accepts("page.md", "# A heading\n\n| a cell |\n|---|\n| one |\n\n```\na call(\n```\n\n    a call(\n")
        self.accepts("page.md", "It calls `run(`.\n\n> He said \"so\".\n\nIt is so (really?)\n")
        self.accepts("page.md", "<!-- begin -->\nIt is so.\n<!-- end -->\n")
        self.accepts("code.cpp", "// A comment (of one line\n")

    def test_code_is_no_prose(self):
        self.accepts("page.md", "Call `who waits; what is sent` first.\n\n```sh\nwho leaves; what is sent\n```")
        self.accepts("code.cpp", 'auto x = "who; what";\nint baton = far_rank(answers);  // twice\n')

    def test_scripts_that_cmake_configures_are_read_as_scripts(self):
        code = "run() {\n" + "  take one two three\n" * 20 + "}\n"
        self.accepts("command.in", "#!/bin/sh\n# Takes words.\n" + code)
        self.finds("command.in", "#!/bin/sh\n# Who comes first waits.\n" + code, (2, "headless"))

    def test_comments_of_fenced_code_are_prose(self):
        self.finds("page.md", "Text.\n\n```cpp\nint a;\nint b;  // who leaves hands it on\n```", (5, "headless"))

    def test_quoted_compiler_errors_are_no_prose(self):
        self.accepts("code.cpp", "// Fine words.\n// error: who waits is answered\nint a;\n")

    def test_the_line_named_is_that_of_the_finding(self):
        text = "int a;\n// A long comment that begins well,\n// and whose end tells of the far ranks.\n"
        self.finds("code.cpp", text, (3, "far"))
        self.finds("page.md", "# Title\n\nA line.\nTwo lines. Who waits\nis woken.", (4, "headless"))

    def test_messages_are_prose(self):
        self.finds("code.cpp", 'fail("rank 3 left: " \n     "who waits for it stops now");', (1, "headless"))
        self.finds("code.py", 'parser.error("the far ranks do not reply in time")', (1, "far"))
        self.finds("CMakeLists.txt", 'message(STATUS "the far ranks do not reply in time")', (1, "far"))

    def test_names_of_tests_are_prose(self):
        self.finds("code.cpp", "TEST(Queue, WhoWaitsIsWoken) {}", (1, "headless"))
        self.finds("code.py", "def test_those_that_wait_are_woken(self):", (1, "headless"))
        self.accepts("code.cpp", "TEST(Queue, WakesWaitingRanks) {}")

    def test_the_command_names_file_and_line_and_fails(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "page.md"
            for text, status in (("Fine words.\n", 0), ("Fine words.\n\nWho waits is woken.\n", 1)):
                path.write_text(text)
                ran = subprocess.run([ROOT / "scripts/prose", path], capture_output=True, text=True, check=False)
                self.assertEqual(ran.returncode, status)
            self.assertEqual(ran.stdout.strip(), f'{path}:3: headless: "Who": name the actor: Who waits is woken.')

    def test_the_tree_is_read_in_ten_seconds(self):
        begun = time.process_time()
        for path in prose.tracked(ROOT):
            if path.suffix in (".md", ".cpp", ".hpp", ".py"):
                list(prose.findings(path, path.read_text()))
        self.assertLess(time.process_time() - begun, 10)


if __name__ == "__main__":
    unittest.main()
