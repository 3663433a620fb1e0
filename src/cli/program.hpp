#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tonari::cli {

/// Runs the command that `arguments` name, which do not include the program's name, and returns the exit status.
///
/// There are two programs: `tonari`, and libexec/tonari/bench, which `tonari` executes for `tonari bench`. Both have
/// all commands, so that help and errors are the same in both. They differ in `add_bench`: `tonari` only lists the
/// command.
int run_program(std::vector<std::string> arguments, void (*add_bench)(CLI::App& app, int& exit_status));

}  // namespace tonari::cli
