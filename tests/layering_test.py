#!/usr/bin/env python3
"""Tests layering.py on small trees, with and without a planted violation."""

import pathlib
import tempfile
import unittest

import layering


def violations(files):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        return list(layering.violations(root))


class Layering(unittest.TestCase):
    def refuses(self, name, text, *words):
        found = violations({name: text})
        self.assertEqual(len(found), 1, found)
        for word in (name, *words):
            self.assertIn(word, found[0])

    def allows(self, name, text):
        self.assertEqual(violations({name: text}), [])

    def test_includes_of_folders_that_the_table_allows_are_allowed(self):
        self.allows("src/job/arena.cpp", '#include "job/arena.hpp"\n#include "base/mapping.hpp"\n#include <sys/mman.h>')
        self.allows("src/message/matching.hpp", '#include "fabric/head.hpp"\n#include <tonari/message.hpp>')
        self.allows("src/cli/run.cpp", '#include "message/matching.hpp"\n#include <tonari/tonari.hpp>')
        self.allows("include/tonari/message.hpp", "#include <tonari/job.hpp>\n#include <span>")
        self.allows("examples/ring.cpp", "#include <tonari/tonari.hpp>\n#include <vector>")

    def test_an_include_that_points_up_or_sideways_is_refused(self):
        self.refuses("src/base/log.cpp", '#include "job/arena.hpp"', ":1:", "job is not below it")
        self.refuses("src/fabric/engine.cpp", '#include "message/matching.hpp"', "message is not below it")
        self.refuses("src/message/matching.cpp", '// why\n#include "window/table.hpp"', ":2:", "window")
        self.refuses("src/job/join.cpp", '  #  include "cli/run.hpp"', "cli is not below it")

    def test_a_public_header_of_a_folder_above_is_refused(self):
        self.refuses("src/base/error.cpp", "#include <tonari/job.hpp>", "which is job's")
        self.refuses("include/tonari/job.hpp", "#include <tonari/message.hpp>", "which is message's")

    def test_ways_around_the_table_are_refused(self):
        self.refuses("src/base/log.cpp", '#include "../job/arena.hpp"', "FOLDER/name.hpp")
        self.refuses("src/job/join.cpp", '#include "arena.hpp"', "FOLDER/name.hpp")
        self.refuses("src/job/join.cpp", "#include HEADER", "must name its file")
        self.refuses("src/other/file.cpp", "", "no folder of that name")
        self.refuses("include/tonari/news.hpp", "", "no folder")

    def test_private_or_foreign_headers_in_public_headers_and_examples_are_refused(self):
        self.refuses("include/tonari/job.hpp", '#include "job/arena.hpp"', "job/arena.hpp")
        self.refuses("include/tonari/job.hpp", "#include <fmt/format.h>", "neither ours nor standard")
        self.refuses("examples/ring.cpp", '#include "base/clock.hpp"', "base/clock.hpp")
        self.refuses("examples/ring.cpp", "#include <fmt/format.h>", "fmt/format.h")

    def test_a_benchmark_may_include_its_own_files_and_the_shared_ones(self):
        self.allows("bench/suites/lu/measure.hpp",
                    '#include "matrix.hpp"\n#include "kernels/matrix.hpp"\n#include <vector>')
        self.allows("bench/suites/lu/tonari.cpp", '#include "wires/tonari.hpp"\n#include "base/clock.hpp"')
        self.allows("bench/suites/lu/question.cpp", '#include "driver/registry.hpp"\n#include "cli/options.hpp"')
        self.allows("bench/suites/stream/far.cpp", '#include "harness/far_program.hpp"')

    def test_an_include_of_a_benchmark_by_another_file_is_refused(self):
        for name in ("bench/suites/series/measure.hpp", "bench/kernels/steps.hpp", "bench/driver/registry.cpp"):
            self.refuses(name, '#include "suites/lu/measure.hpp"', "no other file")

    def test_includes_between_the_driver_and_the_ranks_are_refused(self):
        self.refuses("bench/suites/lu/measure.hpp", '#include "driver/results.hpp"', "driver is not below it")
        self.refuses("bench/suites/lu/tonari.cpp", '#include "cli/options.hpp"', "may not include")
        self.refuses("bench/suites/lu/question.cpp", '#include "harness/worker.hpp"', "harness is not below it")
        self.refuses("bench/driver/results.cpp", '#include "harness/worker.hpp"', "harness is not below it")
        self.refuses("bench/harness/batches.hpp", '#include "wires/tonari.hpp"', "wires is not below it")

    def test_includes_of_tonari_in_programs_for_far_memory_are_refused(self):
        self.refuses("bench/suites/stream/far.cpp", '#include "base/clock.hpp"', "may not include")

    def test_unknown_folders_of_bench_are_refused(self):
        self.refuses("bench/other/file.cpp", "", "no folder of that name")
        self.refuses("bench/kernels/steps.hpp", '#include "bands.hpp"', "FOLDER/name.hpp")


if __name__ == "__main__":
    unittest.main()
