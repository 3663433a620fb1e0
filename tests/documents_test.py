#!/usr/bin/env python3
"""Tests documents.py on small trees, with and without a planted fault."""

import pathlib
import tempfile
import unittest

import documents

CODE = {
    "src/fabric/ring.hpp": "class RingWriter {\n  Status push(const Head& head) noexcept;\n};\n",
    "src/message/send.cpp": "Status Runtime::send_inline(int rank) {\n  return ok;\n}\nint helper(int a);\n",
}


def faults(files):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in {**CODE, **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(documents.faults(root))


class Documents(unittest.TestCase):
    def finds(self, name, text, *words):
        found = faults({name: text})
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_functions_and_links_that_exist_are_accepted(self):
        self.assertEqual(faults({
            "ARCHITECTURE.md": "1 claim  fabric/ring.hpp: RingWriter::push      sender\n"
                               "2 send   src/message/send.cpp: Runtime::send_inline, helper    sender\n",
            "docs/page.md": "[map](../ARCHITECTURE.md#map) and [web](https://example.org) and `[x](nowhere)`\n"
                            "```\n[y](nowhere)\n```\n[folder](../src/)\n"}), [])

    def test_a_link_that_leads_nowhere_is_found(self):
        self.finds("docs/page.md", "Text.\n[gone](gone/)\n", "docs/page.md:2:", "gone/ leads nowhere")

    def test_a_path_that_does_not_exist_is_found(self):
        self.finds("docs/page.md", "See `src/fabric/ring.hpp` and `src/fabric/bell.hpp`.\n",
                   "there is no src/fabric/bell.hpp")
        page = "See `src/message/`, `bench/suites/NAME/` and `src/share/*.cpp`.\n"
        self.assertEqual(faults({"docs/page.md": page}), [])

    def test_a_document_that_is_not_in_the_repository_is_found(self):
        self.finds("src/fabric/head.hpp", "int a;  // the format of DESIGN.md\n", "head.hpp:1:",
                   "DESIGN.md is no document")
        self.finds("docs/page.md", "See `../other/notes.md`.\n", "notes.md is no document")
        page = "See docs/page.md, [send.cpp.md](page.md), page.md, docs/modules/NAME.md and papers.md.\n"
        self.assertEqual(faults({"docs/page.md": page}), [])

    def test_a_file_of_a_call_path_that_does_not_exist_is_found(self):
        self.finds("ARCHITECTURE.md", "1 claim  fabric/bell.hpp: push\n", "ARCHITECTURE.md:1:",
                   "no file fabric/bell.hpp")

    def test_a_function_of_a_call_path_that_does_not_exist_is_found(self):
        self.finds("ARCHITECTURE.md", "1 claim  fabric/ring.hpp: RingWriter::pop\n", "no function RingWriter::pop")
        self.finds("ARCHITECTURE.md", "1 send  message/send.cpp: send_inline, helpers\n", "no function helpers")
        self.finds("ARCHITECTURE.md", "1 send  message/send.cpp: Engine::send_inline\n",
                   "no function Engine::send_inline")


if __name__ == "__main__":
    unittest.main()
