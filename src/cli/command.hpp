#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tonari::cli {

// Each function adds one command to `tonari`, with its options, help text and examples. When the command is chosen, its
// callback does the work and stores the exit status of the process in `exit_status`, which must outlive the parsing.
// A callback may throw SetupError: see run_command_line(). list_bench() adds no options: the real `tonari bench` is a
// program of its own.

// `program`: the program and its arguments, which follow the options.
void add_run(CLI::App& app, const std::vector<std::string>& program, int& exit_status);  // run.cpp
void add_far(CLI::App& app, const std::vector<std::string>& program, int& exit_status);  // far.cpp
void add_serve(CLI::App& app, int& exit_status);                                         // serve.cpp
void list_bench(CLI::App& app, int& exit_status);                                        // bench.cpp
void add_info(CLI::App& app, int& exit_status);                                          // info.cpp
void add_env(CLI::App& app, int& exit_status);                                           // env.cpp
void add_status(CLI::App& app, int& exit_status);                                        // status.cpp
void add_help(CLI::App& app);                                                            // help_command.cpp
void add_version(CLI::App& app);                                                         // help_command.cpp
void add_generate(CLI::App& app);                                                        // generate.cpp

/// Executes libexec/tonari/bench with these arguments instead of this program. Returns only when that fails: prints
/// why, and returns 2.
int execute_bench_program(const std::vector<std::string>& arguments);  // bench.cpp

}  // namespace tonari::cli
