#!/usr/bin/env python3
"""Tests file_tables.py on small trees, with and without a planted fault."""

import pathlib
import tempfile
import unittest

import file_tables

CODE = {"src/news/ring.hpp": "", "src/news/ring.cpp": "", "src/news/ucx/wire.hpp": "", "src/news/CMakeLists.txt": ""}
PAGE = "# news\n\n## Files\n\n| file | subject |\n|---|---|\n| `ring.{hpp,cpp}` | a `queue.hpp` |\n"
WIRE = "| `ucx/wire.hpp` | network |\n"


def faults(files):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(file_tables.faults(root))


class FileTables(unittest.TestCase):
    def finds(self, page, *words):
        found = faults({**CODE, "docs/modules/news.md": page})
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_a_page_that_names_each_file_once_is_accepted(self):
        self.assertEqual(faults({**CODE, "docs/modules/news.md": PAGE + WIRE + "\n## Costs\n\n| `none.hpp` | |\n"}), [])

    def test_a_folder_as_heading_of_its_files_is_accepted(self):
        page = PAGE + "\n### Network: `ucx/`\n\n| file | |\n|---|---|\n| `wire.hpp` | network |\n"
        self.assertEqual(faults({**CODE, "docs/modules/news.md": page}), [])

    def test_a_file_that_is_missing_in_the_table_is_found(self):
        self.finds(PAGE, "src/news/ucx/wire.hpp is missing")

    def test_a_name_that_is_no_file_is_found(self):
        self.finds(PAGE + WIRE + "| `bell.hpp` | |\n", "news.md:9:", "`bell.hpp` is no file of src/news")

    def test_a_file_that_is_named_twice_is_found(self):
        self.finds(PAGE + WIRE + "| `ring.cpp` | |\n", "`ring.cpp` is named in line 7 already")

    def test_a_page_without_a_table_is_found(self):
        self.finds("# news\n", 'has no heading "Files"')

    def test_a_page_without_a_folder_is_found(self):
        self.assertEqual(len(faults({"docs/modules/news.md": PAGE})), 1)

    def test_a_subfolder_with_its_own_page_is_left_out_of_the_page_above(self):
        table = "## Files\n\n| `{}` | |\n"
        self.assertEqual(faults({"src/share/array.hpp": "", "src/share/guarded/table.hpp": "",
                                 "docs/modules/share.md": table.format("array.hpp"),
                                 "docs/modules/guarded.md": table.format("table.hpp")}), [])

    def test_each_shared_file_of_bench_must_be_in_the_page_on_measuring(self):
        tree = {"bench/driver/table.hpp": "", "bench/harness/wire.hpp": "", "bench/suites/lu/measure.hpp": ""}
        page = "## Files\n\n### `driver/`\n\n| `table.hpp` | |\n"
        self.assertEqual(faults({**tree, "docs/modules/measure.md": page}),
                         ['docs/modules/measure.md: bench/harness/wire.hpp is missing in the tables under "Files"'])


if __name__ == "__main__":
    unittest.main()
