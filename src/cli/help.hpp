#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace tonari::cli {

/// Returns the text of --help, in at most 80 columns: groups of options in their order; footers wrapped, except lines
/// that are indented.
std::string help_text(const CLI::App& command);

/// Returns the names from the program to the command: "tonari bench pingpong".
std::string full_name(const CLI::App& command);

/// Returns the commands of `command` that help texts show. A command that belongs to no group is hidden.
std::vector<const CLI::App*> visible_commands(const CLI::App& command);

}  // namespace tonari::cli
