#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tonari::cli {

// The path from main() to the callbacks of a program's commands, shared by `tonari` and `tonari bench`.

/// Sets the form of help texts, and adds --help and --version. Call it before adding commands: they inherit the form
/// and --help.
void set_up(CLI::App& app);

/// Parses `arguments`, which do not include the program's name, and thereby runs the callback of the command that they
/// name. A command that has a positional named PROGRAM is followed by a program with its arguments, which are moved to
/// `program` before the parsing, so that none of them is taken for an option of the command.
///
/// Prints help, the version, and errors, among them SetupErrors of callbacks: one line on standard error, which begins
/// with the full name of the command.
///
/// Returns the exit status for main(): 2 for an error; else `exit_status`, which callbacks set; 1 instead of 0 if
/// standard output could not be written.
int run_command_line(CLI::App& app, std::vector<std::string> arguments, const int& exit_status,
                     std::vector<std::string>* program = nullptr);

/// Returns the command of `app` with these names: {"bench", "lu"}. Throws SetupError, which names the nearest command,
/// when there is none.
const CLI::App& find_command(const CLI::App& app, const std::vector<std::string>& names);

}  // namespace tonari::cli
