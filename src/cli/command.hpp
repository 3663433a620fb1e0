#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tonari::cli {

// Each function adds one subcommand of `tonari`, with its options, help text and an example. When the subcommand is
// chosen, its callback does the work and leaves the exit status of the process in `exit_status`, which must outlive
// the parsing. A callback may throw SetupError: main() prints "tonari NAME: " and its text, and exits with 2.

// `program` is what stands behind the options: see take_program().
void add_run(CLI::App& app, const std::vector<std::string>& program, int& exit_status);  // run.cpp
void add_far(CLI::App& app, const std::vector<std::string>& program, int& exit_status);  // far.cpp
void add_serve(CLI::App& app, int& exit_status);                                         // serve.cpp
void add_bench(CLI::App& app, int& exit_status);                                         // bench.cpp
void add_info(CLI::App& app, int& exit_status);                                          // info.cpp
void add_status(CLI::App& app, int& exit_status);                                        // status.cpp

/// Takes the program and its arguments off a command line: from `--` or from the first argument that is neither an
/// option of `command` nor an option's value. CLI11 never sees them, so that no argument of theirs is taken for ours.
std::vector<std::string> take_program(const CLI::App& command, std::vector<std::string>& arguments);

}  // namespace tonari::cli
