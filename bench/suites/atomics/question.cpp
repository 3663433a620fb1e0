// `tonari bench atomics`: its options, launches and tables. See measure.hpp.

#include "driver/one_sided.hpp"
#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::driver::atomics {

namespace {

class Atomics final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "atomics"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does an atomic operation on a word of another rank take?";
  }
  [[nodiscard]] bool has_ucx() const override { return true; }
  [[nodiscard]] bool has_one_sided_mpi() const override { return true; }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the time until the result is known, the median of all rounds, in microseconds. ucx is "
           "ucx_perftest,\n"
           "UCX's own measurement, in memory that it makes. Open MPI runs without its component rdma, in which\n"
           "4.1.4 crashes.\n"
           "\n"
           "Examples:\n"
           "  tonari bench atomics --quick\n"
           "  tonari bench atomics --memory ours --owner computing\n"
           "  tonari bench atomics --rival openmpi,mpich,ucx --json atomics.json";
  }

  void add_options(CLI::App& command, BenchOptions&) override {
    add_list(command, "--operations", operations_, "Which ones");
    add_list(command, "--memory", memory_, "ours: memory that the system makes. own: memory that the program has");
    add_list(command, "--owner", owner_,
             "The activity of the owner of the word. waiting: is in a receive. computing: calls no library for a fixed "
             "time");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"operations", operations_},
            {"memory", memory_},
            {"owner", owner_},
            {"budget_us", budget_us(options)},
            {"computing_us", computing_us(options)},
            {"computations", computations(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"latency", Better::low}}; }

 private:
  std::string operations_ = "fetch-add,compare-and-swap";
  std::string memory_ = "ours,own";
  std::string owner_ = "waiting,computing";
};

std::vector<Launch> Atomics::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks != 2) throw SetupError("atomics needs two ranks, no more: -n 2");
  const auto memory = parse_choices("--memory", memory_, {"ours", "own"});
  Ask ask{"atomics", options.launch, effort(options)};
  ask.arguments.push_back(
      worker_option("operations", parse_choices("--operations", operations_, {"fetch-add", "compare-and-swap"})));
  ask.arguments.push_back(worker_option("memory", memory));
  ask.arguments.push_back(worker_option("owner", parse_choices("--owner", owner_, {"waiting", "computing"})));

  auto openmpi = without_rdma(ask, systems);
  auto others = openmpi.systems.empty() ? systems : without(systems, Family::openmpi);
  if (std::ranges::find(memory, "ours") == memory.end()) others = without(others, Family::ucx);
  std::vector<Launch> launches;
  if (!others.empty()) launches.push_back({ask, std::move(others), ""});
  if (!openmpi.systems.empty()) launches.push_back(std::move(openmpi));
  if (launches.empty()) throw SetupError("--rival ucx: ucx_perftest knows its own memory alone; add ours to --memory");
  return launches;
}

const Registered<Atomics> registered(Topic::windows, 3);

}  // namespace

}  // namespace tonari::bench::driver::atomics
