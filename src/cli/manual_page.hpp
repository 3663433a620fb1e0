#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace tonari::cli {

/// Returns the name of the manual page of a command: "tonari-bench-pingpong".
std::string manual_page_name(const CLI::App& command);

/// Returns the page in the language of man(7), with the same content as help_text(). `date`: YYYY-MM-DD.
std::string manual_page(const CLI::App& command, const std::string& date);

}  // namespace tonari::cli
