#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace tonari::cli {

/// Returns the table of a program's commands and options, from which a shell (bash, zsh or fish) completes words. For
/// bash and zsh: assignments to associative arrays. For fish: one `complete` command per word. The functions that read
/// it are in src/cli/completion, with a description of it.
std::string completion_table(const CLI::App& app, std::string_view shell);

}  // namespace tonari::cli
