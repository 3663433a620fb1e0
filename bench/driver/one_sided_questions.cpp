// `tonari bench atomics`, `lock`, `multicast`, `register`: how they are put to the systems, and how the answers are
// told. bench/NAME.hpp measures.

#include "driver/question.hpp"
#include "driver/table.hpp"

#include "job/arena.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::cli {

namespace {

void add_list(CLI::App& command, const char* option, std::string& value, const char* meaning) {
  command.add_option(option, value, meaning)->type_name("LIST")->capture_default_str()->group("The question");
}

double budget_us(const BenchOptions& options) { return options.quick ? 3000 : 10000; }
double computing_us(const BenchOptions& options) { return options.quick ? 5000 : 20000; }
int computations(const BenchOptions& options) { return options.quick ? 2 : 3; }

std::vector<std::string> effort(const BenchOptions& options) {
  return {fmt::format("--budget-us={}", budget_us(options)), fmt::format("--computing-us={}", computing_us(options)),
          fmt::format("--computations={}", computations(options))};
}

/// `ask` put to all of them, and to Open MPI at its default also without rdma.
void add_launches(std::vector<Launch>& launches, const Ask& ask, const std::vector<System>& systems,
                  const std::string& note) {
  launches.push_back({ask, systems, note});
  if (auto second = without_rdma(ask, at_default(systems)); !second.systems.empty()) {
    second.note = note;
    launches.push_back(std::move(second));
  }
}

class Atomics final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "atomics"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does an atomic operation on a word of another rank take?";
  }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the time until the answer is known, the median of all rounds, in microseconds. ucx is "
           "ucx_perftest,\n"
           "UCX's own measurement, in memory that it makes. Open MPI is asked without its component rdma, in which\n"
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
             "What the owner of the word does meanwhile. waiting: is in a receive. computing: calls no library for a "
             "fixed time");
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
  [[nodiscard]] std::string tell(const Results& results) const override {
    return tell_metric(results, {"latency", Better::low});
  }

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

class Lock final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "lock"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does it take to get a lock that lies with another rank, alone and in turn with others?";
  }
  [[nodiscard]] int default_ranks() const override { return 0; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints medians of all rounds, in microseconds. latency: of getting a lock and letting it go; for handover\n"
           "the time for each turn of anybody, when all ranks want it, all the time. change: the time between two\n"
           "turns of different ranks. fairness: what the rank with the fewest turns had, against the mean.\n"
           "\n"
           "Examples:\n"
           "  tonari bench lock --quick\n"
           "  tonari bench lock --cases handover --ranks 2,4 --rival openmpi,mpich --json lock.json";
  }

  void add_options(CLI::App& command, BenchOptions&) override {
    command
        .add_option("-n,--ranks", ranks_,
                    "Numbers of ranks for handover, one after the other, each from 2; uncontended is asked with the "
                    "least of them")
        ->type_name("LIST")
        ->default_str(fmt::format("{}", fmt::join(ranks(), ",")))
        ->group("Ranks");
    add_list(command, "--cases", cases_,
             "uncontended: one rank takes a lock of another, who waits, or computes. handover: all want the lock");
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
  [[nodiscard]] std::string tell(const Results& results) const override {
    return tell_metric(results, {"latency", Better::low}) + tell_metric(results, {"change", Better::low}) +
           tell_metric(results, {"fairness", Better::high});
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

class Multicast final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "multicast"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does it take to write the same N bytes into the memory of all other ranks?";
  }
  [[nodiscard]] int default_ranks() const override { return 0; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints medians of all rounds, in microseconds, until the bytes are there. multicast: in one call.\n"
           "loop of pushes: in one for each rank. MPI has no such call, and does the loop for both.\n"
           "\n"
           "Examples:\n"
           "  tonari bench multicast --quick\n"
           "  tonari bench multicast --ranks 2,4,8 --sizes 8-64K --rival openmpi --json multicast.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    command.add_option("-n,--ranks", ranks_, "Numbers of ranks, one after the other, each from 2")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("Ranks");
    add_sizes(command, options, "Bytes a multicast", usual_sizes);
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override {
    const Ask ask{"multicast",
                  options.launch,
                  {worker_option("sizes", sizes(options)), fmt::format("--budget-us={}", budget_us(options))}};
    std::vector<Launch> launches;
    for (const int ranks : ranks()) {
      auto one = ask;
      one.launch.ranks = ranks;
      add_launches(launches, one, systems, fmt::format("ranks {}", ranks));
    }
    return launches;
  }
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"ranks", ranks()}, {"sizes", sizes(options)}, {"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::string tell(const Results& results) const override {
    return tell_metric(results, {"latency", Better::low});
  }

 private:
  static constexpr const char* usual_sizes = "8,64,512,4K,16K,64K,256K,1M";

  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    return parse_sizes("--sizes", options.sizes.value_or(options.quick ? "8,4K,64K" : usual_sizes));
  }
  [[nodiscard]] std::vector<int> ranks() const {
    return parse_ascending("--ranks", ranks_, 2, job::ranks_per_host_max);
  }

  std::string ranks_ = "4";
};

class Register final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "register"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does it take to let other ranks reach N bytes of the program's own memory, and to end that?";
  }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints medians of all rounds, in microseconds. together: a window that both ranks make and free. alone: "
           "one\n"
           "rank does it by itself; of an MPI, memory attached to a dynamic window. pinned: its pages are kept in\n"
           "memory from the start, as far as `ulimit -l` allows.\n"
           "\n"
           "Examples:\n"
           "  tonari bench register --quick\n"
           "  tonari bench register --sizes 4K-1G --rival openmpi,mpich --json register.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    add_sizes(command, options, "Bytes of each rank, from 8", usual_sizes);
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override {
    if (options.launch.ranks != 2) throw SetupError("register needs two ranks, no more: -n 2");
    const auto all_sizes = sizes(options);
    if (std::ranges::min(all_sizes) < 8) throw SetupError("--sizes: register needs 8 bytes at least");
    std::vector<Launch> launches;
    add_launches(launches,
                 {"register",
                  options.launch,
                  {worker_option("sizes", all_sizes), fmt::format("--budget-us={}", budget_us(options))}},
                 systems, "");
    return launches;
  }
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"sizes", sizes(options)}, {"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::string tell(const Results& results) const override {
    return tell_metric(results, {"make", Better::low}) + tell_metric(results, {"free", Better::low});
  }

 private:
  static constexpr const char* usual_sizes = "4K,64K,1M,16M,256M";

  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    return parse_sizes("--sizes", options.sizes.value_or(options.quick ? "4K,1M" : usual_sizes));
  }
};

}  // namespace

std::unique_ptr<Question> make_atomics() { return std::make_unique<Atomics>(); }
std::unique_ptr<Question> make_lock() { return std::make_unique<Lock>(); }
std::unique_ptr<Question> make_multicast() { return std::make_unique<Multicast>(); }
std::unique_ptr<Question> make_register() { return std::make_unique<Register>(); }

}  // namespace tonari::cli
