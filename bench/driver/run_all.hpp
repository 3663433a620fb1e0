#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tonari::bench::driver {

enum class Effort { quick, usual, full };

/// Sets the papers' tables beside these files of results, as report::tell_papers_of() does.
using TellPapers =
    std::function<std::string(const std::vector<std::string>& files, const std::string& markdown, bool all)>;

/// Which benchmarks `tonari bench all` runs, how, and where their results go.
struct AllOptions {
  std::string folder;
  Effort effort = Effort::usual;
  std::vector<std::string> only;  ///< Names of benchmarks; empty: all.
  bool papers = false;            ///< Only the benchmarks that the papers' tables, figures and findings name.
  TellPapers tell_papers;
};

/// Runs the benchmarks one after the other, each as a process, with all rivals of this machine. A benchmark NAME leaves
/// NAME.json and NAME.txt, its output, in the folder. A benchmark whose results are there already, with the same effort
/// and the same version of tonari, is not run again: an interrupted run continues. One that fails does not end the run.
/// Prints the papers' tables beside the results in the folder, which it also writes to papers.md there, and what became
/// of each benchmark. Returns 1 if a benchmark failed, and 128 + the signal that
/// stopped the run. Throws SetupError if the folder cannot be written, a name is
/// unknown, or the papers' data cannot be read.
int run_all(const AllOptions& options);

}  // namespace tonari::bench::driver
