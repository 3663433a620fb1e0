#pragma once

#include <string>
#include <vector>

namespace tonari::bench::driver {

enum class Effort { quick, usual, full };

/// Which benchmarks `tonari bench all` runs, how, and where their results go.
struct AllOptions {
  std::string folder;
  Effort effort = Effort::usual;
  std::vector<std::string> only;  ///< Names of benchmarks; empty: all.
  bool papers = false;            ///< Only the benchmarks that have findings of the papers.
};

/// Runs the benchmarks one after the other, each as a process, with all rivals of this machine. A benchmark NAME leaves
/// NAME.json and NAME.txt, its output, in the folder. A benchmark whose results are there already, with the same effort
/// and the same version of tonari, is not run again: an interrupted run continues. One that fails does not end the run.
/// Prints what became of each, and the papers' findings. Returns 1 if a benchmark failed, and 128 + the signal that
/// stopped the run. Throws SetupError if the folder cannot be written, or a name is unknown.
int run_all(const AllOptions& options);

}  // namespace tonari::bench::driver
