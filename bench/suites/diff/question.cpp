// `tonari bench diff`: its options, launches and tables. See measure.hpp.

#include "cli/options.hpp"
#include "driver/registry.hpp"

#include "window/local/diff.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tonari::bench::driver::diff {

namespace {

class Diff final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "diff"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how fast are the differences between a page and its twin found and stored?";
  }
  [[nodiscard]] int default_ranks() const override { return 1; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints GB of pages per second, the median of all rounds: what is compared, not counting the twins; and the "
           "bytes that would travel of a page in a message, with 8 for each run. Beside tonari, which takes the best "
           "code for this processor: its other levels; byte-loop, a plain loop over all bytes; and memcmp, which does "
           "the same where 64 bytes are not equal.\n"
           "\n"
           "Examples:\n"
           "  tonari bench diff --quick\n"
           "  tonari bench diff --cases scattered,scattered-cold --changed 0,1,2,3 --json diff.json";
  }

  void add_options(CLI::App& command, BenchOptions&) override {
    command.add_option("--changed", changed_, "Per cent of a page's bytes that differ, each from 0 to 100")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command
        .add_option("--cases", cases_,
                    "scattered: single bytes differ. runs: 64 bytes in a row. scattered-cold, runs-cold: of pages that "
                    "are in no cache (default: all, with --quick scattered,runs)")
        ->type_name("LIST")
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"changed", changed()}, {"cases", cases(options)}, {"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{"rate", Better::high}, {"bytes", Better::neither}};
  }
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  [[nodiscard]] std::vector<int> changed() const { return parse_ascending("--changed", changed_, 0, 100); }
  [[nodiscard]] std::vector<std::string> cases(const BenchOptions& options) const {
    return parse_choices("--cases",
                         cases_.value_or(options.quick ? "scattered,runs" : "scattered,runs,scattered-cold,runs-cold"),
                         {"scattered", "runs", "scattered-cold", "runs-cold"});
  }
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 1000 : 10'000; }

  std::string changed_ = "0,1,5,10,25,50,100";
  std::optional<std::string> cases_;
};

/// One launch for tonari, one per lower level, and one for the other systems.
std::vector<Launch> Diff::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks != 1) throw SetupError("diff needs one rank, no more: -n 1");
  if (std::ranges::any_of(systems, [](const System& system) { return system.family != Family::tonari; })) {
    throw SetupError("--rival: MPI has no twins; leave --rival out");
  }
  Ask ask{"diff", options.launch, {}};
  ask.arguments = {worker_option("changed", changed()), worker_option("cases", cases(options)),
                   fmt::format("--budget-us={}", budget_us(options))};
  std::vector<Launch> launches{{ask, systems, ""}};
  for (const auto level : tonari::window::diff_levels) {
    const auto* const code = tonari::window::diff_code(level);
    if (code == nullptr || code == &tonari::window::diff_code()) continue;
    auto lower = ask;
    lower.arguments.push_back(fmt::format("--level={}", to_string(level)));
    launches.push_back({std::move(lower), systems, std::string(to_string(level))});
  }
  launches.push_back({std::move(ask), {{Family::memcmp, false}, {Family::byte_loop, false}}, ""});
  return launches;
}

std::string Diff::tell(const Results& results) const {
  const bool passed = std::ranges::all_of(results.checks(), &Check::passed);
  return Question::tell(results) + fmt::format("\nbytes stored in {} runs: {}\n", results.checks().size(),
                                               passed ? "all as they should be" : "WRONG");
}

const Registered<Diff> registered(Topic::windows, 1);

}  // namespace

}  // namespace tonari::bench::driver::diff
