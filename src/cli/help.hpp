#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace tonari::cli {

/// The text of --help: made for 80 columns, groups of options in their order, footers wrapped but for indented lines.
std::string help_text(const CLI::App& command);

}  // namespace tonari::cli
