#pragma once

#include <CLI/CLI.hpp>

namespace tonari::cli {

// Each function adds one subcommand of `tonari`, with its options, help text and an example. When the subcommand is
// chosen, its callback does the work and leaves the exit status of the process in `exit_status`, which must outlive
// the parsing. A callback may throw SetupError: main() prints "tonari NAME: " and its text, and exits with 2.

void add_run(CLI::App& app, int& exit_status);     // run.cpp
void add_bench(CLI::App& app, int& exit_status);   // bench.cpp
void add_info(CLI::App& app, int& exit_status);    // info.cpp
void add_status(CLI::App& app, int& exit_status);  // status.cpp

}  // namespace tonari::cli
