#pragma once

#include "cli/launch.hpp"
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

/// What every benchmark takes.
struct BenchOptions {
  cli::LaunchOptions launch;
  std::vector<std::string> rivals;
  bool rivals_only = false;
  bool quick = false;
  int rounds = 0;  ///< 0: five, or one if quick.
  std::optional<std::string> sizes;
  std::string json;
};

/// One launch of workers, repeated in every round, for each of `systems` in turn.
struct Launch {
  Ask ask;
  std::vector<System> systems;
  std::string note;  ///< Tells this launch's own parameters from those of others: "split 16".
};

/// A benchmark: one question, how it is put to the systems, and how the answer is told to people.
class Question {
 public:
  virtual ~Question() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// In one line, ending in a question mark.
  [[nodiscard]] virtual std::string_view asks() const = 0;
  /// 0: its own option says how many, as a list. no_ranks: it has none.
  [[nodiscard]] virtual int default_ranks() const = 0;
  static constexpr int no_ranks = -1;
  /// What --rival takes, for its help text.
  [[nodiscard]] virtual std::string rivals() const;
  /// Whether UCX's own measurement can be asked: the benchmark's folder has a file ucx.cpp.
  [[nodiscard]] virtual bool has_ucx() const { return false; }
  /// Whether the workers are programs of far memory: the folder has a file far.cpp.
  [[nodiscard]] virtual bool is_of_far_memory() const { return false; }
  /// For its help text: a heading, and indented lines.
  [[nodiscard]] virtual std::string_view examples() const = 0;
  /// Adds what only this benchmark takes, with the meaning of --sizes, to its command.
  virtual void add_options(CLI::App& command, BenchOptions& options) = 0;

  /// The launches of one round. `systems` are tonari and the rivals asked for. Throws SetupError on wrong options.
  [[nodiscard]] virtual std::vector<Launch> plan(const BenchOptions& options,
                                                 const std::vector<System>& systems) const = 0;
  /// Options beyond the common ones, as they were used.
  [[nodiscard]] virtual nlohmann::ordered_json parameters(const BenchOptions& options) const = 0;
  /// Adds what follows from the samples, such as a fitted line.
  virtual void conclude(Results&) const {}
  [[nodiscard]] virtual std::string tell(const Results& results) const = 0;
};

/// "8,40,4K", ranges that double, "64-1M", and ranges in steps, "4K-12K+256", as numbers. K, M, G are powers of 1024.
/// Throws SetupError, naming `option`, on anything else.
std::vector<std::size_t> parse_sizes(std::string_view option, std::string_view text);
/// The option --sizes of a question. `meaning`: what has so many bytes.
void add_sizes(CLI::App& command, BenchOptions& options, std::string_view meaning, std::string_view usual);
/// Parts of "warm,cold". Throws SetupError, naming `option`, on a part that is not among `known`, or without parts.
std::vector<std::string> parse_choices(std::string_view option, std::string_view text,
                                       const std::vector<std::string>& known);
/// "0,16,32" as numbers from `min` to `max`. Throws SetupError, naming `option`, on anything else.
std::vector<int> parse_numbers(std::string_view option, std::string_view text, int min, int max);
/// As parse_numbers, in ascending order and each once; at least one.
std::vector<int> parse_ascending(std::string_view option, std::string_view text, int min, int max);
/// --key=1,2,3
template <class Values>
std::string worker_option(std::string_view key, const Values& values) {
  return fmt::format("--{}={}", key, fmt::join(values, ","));
}

/// Two, four and eight, but not so many that the processors only change between them.
std::vector<int> usual_ranks();
/// `ask` put to those of `systems` that are Open MPI, without its one-sided component rdma, which it chooses by itself:
/// without it, it is quicker in its own memory; in it, 4.1.4 crashes when it compares and swaps. To nobody between
/// ranks that speak as hosts do: there it does not choose (bench_systems.cpp).
Launch without_rdma(Ask ask, const std::vector<System>& systems);
/// Those that are not for any number of threads.
std::vector<System> at_default(const std::vector<System>& systems);
/// The others of them.
std::vector<System> without(const std::vector<System>& systems, Family family);

}  // namespace tonari::bench::driver
