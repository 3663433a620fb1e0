// `tonari bench rate`: its options, launches and tables. See measure.hpp.

#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::driver::rate {

namespace {

constexpr int threads_max = 64;

class Rate final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "rate"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how many short messages per second does one rank send another?";
  }
  [[nodiscard]] bool has_ucx() const override { return true; }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints millions of 8-byte messages per second, the median of all rounds. Each thread of rank 0 starts 64 "
           "sends to one of rank 1 and waits for them and for an empty message back. An MPI that was not started for "
           "any number of threads is measured with one. ucx is ucx_perftest, UCX's own measurement, with one thread.\n"
           "\n"
           "Examples:\n"
           "  tonari bench rate --quick\n"
           "  tonari bench rate --threads 1,2,8 --rival openmpi-mt\n"
           "  tonari bench rate --rival openmpi,mpich,ucx --json rate.json";
  }

  void add_options(CLI::App& command, BenchOptions&) override {
    command
        .add_option(
            "--threads", threads_,
            "Threads per rank, one number after the other, each from 1 to 64. With more than one, ranks are not "
            "bound to a core, unless --bind says so")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"threads", threads()}, {"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"rate", Better::high}}; }

 private:
  [[nodiscard]] std::vector<int> threads() const { return parse_ascending("--threads", threads_, 1, threads_max); }
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 20'000 : 100'000; }

  std::string threads_ = "1,2,4";
};

std::vector<Launch> Rate::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks != 2) throw SetupError("rate needs two ranks, no more: -n 2");
  std::vector<Launch> launches;
  for (const int threads : threads()) {
    Ask ask{"rate", options.launch, {}};
    if (threads > 1 && ask.launch.bind.empty()) ask.launch.bind = "none";
    ask.arguments = {fmt::format("--threads-a-rank={}", threads), fmt::format("--budget-us={}", budget_us(options))};
    Launch launch{std::move(ask), {}, fmt::format("threads {}", threads)};
    std::ranges::copy_if(systems, std::back_inserter(launch.systems), [&](const System& system) {
      return threads == 1 || is_tonari(system) || system.thread_multiple;
    });
    if (!launch.systems.empty()) launches.push_back(std::move(launch));
  }
  if (launches.empty()) {
    throw SetupError(fmt::format("--threads {}: no system that was asked for takes more than one; add 1", threads_));
  }
  return launches;
}

const Registered<Rate> registered(Topic::messages, 5);

}  // namespace

}  // namespace tonari::bench::driver::rate
