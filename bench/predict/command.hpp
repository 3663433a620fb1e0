#pragma once

#include <CLI/CLI.hpp>

namespace tonari::bench::predict {

/// Adds `predict`. The callback stores the exit status in `exit_status`, which must outlive the parsing. It throws
/// SetupError when nothing can be predicted.
void add_predict(CLI::App& app, int& exit_status);

}  // namespace tonari::bench::predict
