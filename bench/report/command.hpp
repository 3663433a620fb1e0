#pragma once

#include <CLI/CLI.hpp>

namespace tonari::bench::report {

/// Adds `report`. Its callback writes the output. It throws SetupError on input that is no report, and when the output
/// cannot be written; then nothing is left of it.
void add_report(CLI::App& app, int& exit_status);

}  // namespace tonari::bench::report
