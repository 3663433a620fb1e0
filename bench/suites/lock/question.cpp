// `tonari bench lock`: its options, launches and tables. See measure.hpp.

#include "driver/one_sided.hpp"
#include "driver/registry.hpp"
#include "job/arena.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace tonari::bench::driver::lock {

namespace {

class Lock final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "lock"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does it take to get the lock of another rank, alone and in turn with others?";
  }
  [[nodiscard]] bool has_one_sided_mpi() const override { return true; }
  [[nodiscard]] int default_ranks() const override { return 0; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints medians of all rounds, in microseconds. latency: of getting a lock and letting it go; for handover\n"
           "the time per acquisition by any rank, when all ranks want it all the time. change: the time between two\n"
           "turns of different ranks. fairness: what the rank with the fewest turns had, against the mean.\n"
           "\n"
           "Examples:\n"
           "  tonari bench lock --quick\n"
           "  tonari bench lock --cases handover --ranks 2,4 --rival openmpi,mpich --json lock.json";
  }

  void add_options(CLI::App& command, BenchOptions&) override {
    command
        .add_option("-n,--ranks", ranks_,
                    "Numbers of ranks for handover, one after the other, each from 2; uncontended is measured with the "
                    "least of them")
        ->type_name("LIST")
        ->default_str(fmt::format("{}", fmt::join(ranks(), ",")))
        ->group("Ranks");
    add_list(command, "--cases", cases_,
             "uncontended: one rank takes a lock of another, which waits, or computes. handover: all want the lock");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"ranks", ranks()},
            {"cases", cases_},
            {"budget_us", budget_us(options)},
            {"computing_us", computing_us(options)},
            {"computations", computations(options)},
            {"stretch_us", stretch_us(options)},
            {"stretches", stretches}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{"latency", Better::low}, {"change", Better::low}, {"fairness", Better::high}};
  }

 private:
  static constexpr int stretches = 3;

  [[nodiscard]] std::vector<int> ranks() const {
    return ranks_ ? parse_ascending("--ranks", *ranks_, 2, job::ranks_per_host_max) : usual_ranks();
  }
  [[nodiscard]] static double stretch_us(const BenchOptions& options) { return options.quick ? 30'000 : 200'000; }

  std::optional<std::string> ranks_;
  std::string cases_ = "uncontended,handover";
};

std::vector<Launch> Lock::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  auto cases = parse_choices("--cases", cases_, {"uncontended", "handover"});
  const bool hands_over = std::ranges::find(cases, "handover") != cases.end();
  Ask ask{"lock", options.launch, effort(options)};
  ask.arguments.push_back(fmt::format("--stretch-us={}", stretch_us(options)));
  ask.arguments.push_back(fmt::format("--stretches={}", stretches));
  std::vector<Launch> launches;
  for (const int ranks : ranks()) {
    auto one = ask;
    one.launch.ranks = ranks;
    one.arguments.push_back(worker_option("cases", cases));
    add_launches(launches, one, systems, fmt::format("ranks {}", ranks));
    cases = {"handover"};
    if (!hands_over) break;
  }
  return launches;
}

const Registered<Lock> registered(Topic::windows, 4);

}  // namespace

}  // namespace tonari::bench::driver::lock
