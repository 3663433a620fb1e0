#pragma once

#include "driver/run_all.hpp"

#include <CLI/CLI.hpp>

namespace tonari::bench::driver {

/// Adds `bench` with a subcommand for each benchmark. The callback of the chosen one runs it and stores the exit status
/// in `exit_status`, which must outlive the parsing. It throws SetupError when the benchmark cannot be run.
/// `tell_papers` ends `bench all` and `bench papers`.
void add_bench(CLI::App& app, int& exit_status, const TellPapers& tell_papers);

}  // namespace tonari::bench::driver
