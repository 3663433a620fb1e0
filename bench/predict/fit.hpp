#pragma once

#include <CLI/CLI.hpp>

namespace tonari::bench::predict {

/// Adds `bench fit`, which measures the parameters of predictions. The callback stores the exit status in
/// `exit_status`, which must outlive the parsing. It throws SetupError.
void add_fit(CLI::App& bench, int& exit_status);

}  // namespace tonari::bench::predict
