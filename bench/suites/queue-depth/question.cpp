// `tonari bench queue-depth`: its options, launches and tables. See measure.hpp.

#include "cli/options.hpp"
#include "cli/table.hpp"
#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tonari::bench::driver::queue_depth {

namespace {

constexpr int bytes_max = 1 << 20;
constexpr int rounds_max = 1'000'000;

class QueueDepth final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "queue-depth"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how deep do the queues of receives and of unexpected messages get?";
  }
  [[nodiscard]] int default_ranks() const override { return 16; }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool /*quick*/) const override {
    return {{"", {}}};  // only tonari reports it
  }
  [[nodiscard]] std::string_view examples() const override {
    return "For 2, 4, 8, ... ranks, up to -n: prints the longest that the queues of a rank\n"
           "were, in all-to-alls, in the integer sort of the NAS Parallel Benchmarks (IS),\n"
           "and in the transpositions of their Fourier transform (FT). MPI does not report the length of its queues, "
           "so --rival takes nothing.\n"
           "\n"
           "Examples:\n"
           "  tonari bench queue-depth --quick\n"
           "  tonari bench queue-depth -n 32 --cases sort,sort-by-hand --class A --json queue-depth.json";
  }

  void add_options(CLI::App& command, BenchOptions&) override {
    command
        .add_option(
            "--cases", cases_,
            "all-to-all: of the library. all-to-all-by-hand: started receives, then started sends. sort, "
            "sort-by-hand: the sort, with the one or the other. fourier, fourier-by-hand: the transpositions of "
            "NPB's FT, likewise")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command.add_option("--bytes", bytes_, "Bytes from each rank to each in an all-to-all, from 1 to 1048576")
        ->type_name("N")
        ->transform(cli::whole_number("a number of bytes", 1, bytes_max))
        ->capture_default_str()
        ->group("The question");
    command.add_option("--exchanges", exchanges_, "All-to-alls, one after the other (default: 1000, with --quick 100)")
        ->type_name("N")
        ->transform(cli::whole_number("a number of exchanges", 1, rounds_max))
        ->group("The question");
    command
        .add_option("--class", class_,
                    "NPB's size of the sort. S: 2^16 keys. W: 2^20. A: 2^23 (default: W, with --quick S)")
        ->type_name("S|W|A")
        ->check(cli::one_of({"S", "W", "A"}))
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"cases", cases_}, {"bytes", bytes_}, {"exchanges", exchanges(options)}, {"class", sort_class(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override { return {}; }
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  [[nodiscard]] int exchanges(const BenchOptions& options) const {
    return exchanges_ != 0 ? exchanges_ : options.quick ? 100 : 1000;
  }
  [[nodiscard]] std::string sort_class(const BenchOptions& options) const {
    return !class_.empty() ? class_ : options.quick ? "S" : "W";
  }

  std::string cases_ = "all-to-all,all-to-all-by-hand,sort,sort-by-hand,fourier,fourier-by-hand";
  int bytes_ = 8;
  int exchanges_ = 0;
  std::string class_;
};

/// A launch for each case and number of ranks: the counters that are read never fall.
std::vector<Launch> QueueDepth::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks < 2) throw SetupError("queue-depth needs two ranks: -n 2");
  if (std::ranges::any_of(systems, [](const System& system) { return system.family != Family::tonari; })) {
    throw SetupError("--rival: MPI does not report how deep its queues are; leave --rival out");
  }
  std::vector<Launch> launches;
  const auto cases = parse_choices(
      "--cases", cases_, {"all-to-all", "all-to-all-by-hand", "sort", "sort-by-hand", "fourier", "fourier-by-hand"});
  for (int ranks = 2;; ranks = std::min(2 * ranks, options.launch.ranks)) {
    for (const auto& one : cases) {
      Ask ask{"queue-depth", options.launch, {}};
      ask.launch.ranks = ranks;
      ask.arguments = {fmt::format("--case={}", one), fmt::format("--bytes={}", bytes_),
                       fmt::format("--exchanges={}", exchanges(options)),
                       fmt::format("--class={}", sort_class(options))};
      launches.push_back({std::move(ask), systems, fmt::format("{}, ranks {}", one, ranks)});
    }
    if (ranks == options.launch.ranks) return launches;
  }
}

std::string QueueDepth::tell(const Results& results) const {
  std::vector<std::vector<std::string>> rows{
      {"longest queues", "ranks", "unexpected, mean", "most", "posted, mean", "most"}};
  for (const auto& series : results.series()) {
    if (series.name.metric != "unexpected") continue;
    const auto& posted = results.beside(series.name, "posted");
    for (const auto& point : series.points) {
      const auto of_messages = series.summary(point.first);
      const auto of_receives = posted.summary(point.first);
      rows.push_back({series.name.label, fmt::format("{:.0f}", point.first), format_number(of_messages.mean),
                      fmt::format("{:.0f}", of_messages.max), format_number(of_receives.mean),
                      fmt::format("{:.0f}", of_receives.max)});
    }
  }
  const bool passed = std::ranges::all_of(results.checks(), &Check::passed);
  return "\n" + cli::format_table(rows) +
         fmt::format("\nmessages and sorted keys in {} runs: {}\n", results.checks().size(),
                     passed ? "all as they should be" : "WRONG");
}

const Registered<QueueDepth> registered(Topic::messages, 4);

}  // namespace

}  // namespace tonari::bench::driver::queue_depth
