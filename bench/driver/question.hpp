#pragma once

#include "cli/launch.hpp"
#include "driver/conditions.hpp"
#include "driver/metric.hpp"
#include "driver/results.hpp"
#include "driver/systems.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver {

/// The options that every benchmark has.
struct BenchOptions {
  cli::LaunchOptions launch;
  std::vector<std::string> networks;  ///< --network. If there are several, they are measured in turn.
  std::vector<std::string> rivals;
  bool rivals_only = false;
  bool quick = false;
  bool no_noise_floor = false;
  int rounds = 0;  ///< 0: five, or one if quick.
  std::optional<std::string> sizes;
  std::string json;
  std::vector<Condition> fail_if;
};

/// One launch of workers, repeated in every round, for each of `systems` in turn.
struct Launch {
  Ask ask;
  std::vector<System> systems;
  std::string note;  ///< Distinguishes launches by their parameters: "split 16".
};

/// How `tonari bench all` runs a benchmark.
struct UsualRun {
  std::string suffix;  ///< Ends the names of its files: "-blocks". The first run of a benchmark has none.
  std::vector<std::string> arguments;
};

/// Returns the MPIs that --rival can name, for its help.
std::string rival_mpis();

/// A benchmark: its question, options, launches, and tables.
class Question {
 public:
  virtual ~Question() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// The question, in one line that ends in a question mark.
  [[nodiscard]] virtual std::string_view asks() const = 0;
  /// 0: the benchmark has its own option, a list. no_ranks: it has no ranks.
  [[nodiscard]] virtual int default_ranks() const = 0;
  static constexpr int no_ranks = -1;
  /// The values of --rival, for its help text.
  [[nodiscard]] virtual std::string rivals() const;
  /// True if UCX's own measurement supports it: the folder has a file ucx.cpp.
  [[nodiscard]] virtual bool has_ucx() const { return false; }
  /// True if the file mpi.cpp uses windows, which tonari's MPI does not support yet.
  [[nodiscard]] virtual bool has_one_sided_mpi() const { return false; }
  /// True if the worker is a program for far memory: the folder has a file far.cpp.
  [[nodiscard]] virtual bool is_of_far_memory() const { return false; }
  /// The runs of `tonari bench all`.
  [[nodiscard]] virtual std::vector<UsualRun> usual_runs(bool /*quick*/) const { return {{"", {"--rival", "auto"}}}; }
  /// The end of the help text: paragraphs and indented lines.
  [[nodiscard]] virtual std::string_view examples() const = 0;
  /// Adds the options that only this benchmark has, and --sizes, to its command.
  virtual void add_options(CLI::App& command, BenchOptions& options) = 0;

  /// Returns the launches of one round. `systems` are tonari and the chosen rivals. Throws SetupError on wrong options.
  [[nodiscard]] virtual std::vector<Launch> plan(const BenchOptions& options,
                                                 const std::vector<System>& systems) const = 0;
  /// Completes `ask` with results of the launches before it. Returns false if there is nothing to launch.
  [[nodiscard]] virtual bool complete(Ask&, const System&, const Results&) const { return true; }
  /// Returns the values used for options beyond the common ones.
  [[nodiscard]] virtual nlohmann::ordered_json parameters(const BenchOptions& options) const = 0;
  /// Returns the metrics of which low or high values are better, and all that have a table of the usual form. The
  /// first one is that of `ratio` in --fail-if.
  [[nodiscard]] virtual std::vector<Metric> metrics() const = 0;
  /// Adds derived series, such as a fitted line.
  virtual void conclude(Results&) const {}
  /// Returns the tables: by default, of metrics().
  [[nodiscard]] virtual std::string tell(const Results& results) const;
};

/// Parses "8,40,4K", ranges that double, "64-1M", and ranges in steps, "4K-12K+256". K, M, G are powers of 1024. Throws
/// SetupError, which names `option`, on anything else.
std::vector<std::size_t> parse_sizes(std::string_view option, std::string_view text);
/// Adds the option --sizes. `meaning` says which quantity has this size.
void add_sizes(CLI::App& command, BenchOptions& options, std::string_view meaning, std::string_view usual);
/// Splits "warm,cold". Throws SetupError, which names `option`, on a part that is not in `known`, or without parts.
std::vector<std::string> parse_choices(std::string_view option, std::string_view text,
                                       const std::vector<std::string>& known);
/// Parses "0,16,32", numbers from `min` to `max`. Throws SetupError, which names `option`, on anything else.
std::vector<int> parse_numbers(std::string_view option, std::string_view text, int min, int max);
/// The same, sorted and without duplicates; at least one number.
std::vector<int> parse_ascending(std::string_view option, std::string_view text, int min, int max);
/// Returns "--key=1,2,3".
template <class Values>
std::string worker_option(std::string_view key, const Values& values) {
  return fmt::format("--{}={}", key, fmt::join(values, ","));
}

/// Adds the metric "rate" in MB/s (10^6 bytes) beside each "latency" in us over bytes: one sample per round.
void add_rates(Results& results);

/// Returns 2, 4 and 8, without numbers above four times the cores.
std::vector<int> usual_ranks();
/// Returns a launch of `ask` for each Open MPI in `systems`, without the one-sided component rdma, Open MPI's default.
/// Without rdma it is faster in memory that it allocates; with rdma, 4.1.4 crashes on compare-and-swap. With --apart
/// network the launch has no systems: Open MPI has no choice then (systems.cpp).
Launch without_rdma(Ask ask, const std::vector<System>& systems);
/// Returns the systems that are not started for any number of threads.
std::vector<System> at_default(const std::vector<System>& systems);
/// Returns the systems of other families.
std::vector<System> without(const std::vector<System>& systems, Family family);

}  // namespace tonari::bench::driver
