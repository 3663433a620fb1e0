// `tonari bench barrier`, `broadcast`, `allreduce`, `alltoall`: how they are put to the systems, with several numbers
// of ranks in turn, and how the answers are told. bench/NAME.hpp measures.

#include "driver/question.hpp"
#include "driver/table.hpp"

#include "job/arena.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::cli {

namespace {

/// The sizes that a collective is measured with.
struct Sizes {
  std::string_view meaning;  ///< For the help text.
  std::string_view usual;
  std::string_view quick;
  std::size_t multiple_of = 1;
};

/// What tells one collective from another.
struct Collective {
  std::string_view name;
  std::string_view asks;
  std::string_view examples;
  std::optional<Sizes> sizes;
  std::vector<std::string_view> metrics;
};

class CollectiveQuestion final : public Question {
 public:
  explicit CollectiveQuestion(Collective collective) : collective_(std::move(collective)) {}

  [[nodiscard]] std::string_view name() const override { return collective_.name; }
  [[nodiscard]] std::string_view asks() const override { return collective_.asks; }
  [[nodiscard]] int default_ranks() const override { return 0; }
  [[nodiscard]] std::string_view examples() const override { return collective_.examples; }

  void add_options(CLI::App& command, BenchOptions& options) override {
    command.add_option("-n,--ranks", ranks_, "Numbers of ranks, one after the other, each from 2")
        ->type_name("LIST")
        ->default_str(fmt::format("{}", fmt::join(ranks(), ",")))
        ->group("Ranks");
    if (!collective_.sizes) return;
    add_sizes(command, options, collective_.sizes->meaning, collective_.sizes->usual);
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override;
  [[nodiscard]] std::string tell(const Results& results) const override {
    std::string text;
    for (const auto metric : collective_.metrics) text += tell_metric(results, {metric, Better::low});
    return text;
  }

 private:
  [[nodiscard]] std::vector<int> ranks() const;
  [[nodiscard]] std::vector<std::size_t> sizes(const BenchOptions& options) const;
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 5000 : 30000; }

  Collective collective_;
  std::optional<std::string> ranks_;
};

std::vector<int> CollectiveQuestion::ranks() const {
  return ranks_ ? parse_ascending("--ranks", *ranks_, 2, job::ranks_per_host_max) : usual_ranks();
}

std::vector<std::size_t> CollectiveQuestion::sizes(const BenchOptions& options) const {
  const auto& [meaning, usual, quick, multiple_of] = *collective_.sizes;
  auto all = parse_sizes("--sizes", options.sizes.value_or(std::string(options.quick ? quick : usual)));
  const auto wrong = std::ranges::find_if(all, [&](auto size) { return size % multiple_of != 0; });
  if (wrong == all.end()) return all;
  throw SetupError(
      fmt::format("--sizes: {} bytes are not a whole number of doubles; choose multiples of {}", *wrong, multiple_of));
}

std::vector<Launch> CollectiveQuestion::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  Ask ask{std::string(name()), options.launch, {fmt::format("--budget-us={}", budget_us(options))}};
  if (collective_.sizes) ask.arguments.push_back(worker_option("sizes", sizes(options)));
  std::vector<Launch> launches;
  for (const int ranks : ranks()) {
    ask.launch.ranks = ranks;
    launches.push_back({ask, systems, fmt::format("ranks {}", ranks)});
  }
  return launches;
}

nlohmann::ordered_json CollectiveQuestion::parameters(const BenchOptions& options) const {
  nlohmann::ordered_json used{{"ranks", ranks()}, {"budget_us", budget_us(options)}};
  if (collective_.sizes) used["sizes"] = sizes(options);
  return used;
}

}  // namespace

std::unique_ptr<Question> make_barrier() {
  return std::make_unique<CollectiveQuestion>(
      Collective{"barrier",
                 "how long does a barrier take, against the number of ranks?",
                 "Prints the time of a barrier among many in a row, the median of all rounds, in microseconds.\n"
                 "\n"
                 "Examples:\n"
                 "  tonari bench barrier --quick\n"
                 "  tonari bench barrier --ranks 2,3,4,16 --rival openmpi,mpich --json barrier.json",
                 std::nullopt,
                 {"latency"}});
}

std::unique_ptr<Question> make_broadcast() {
  return std::make_unique<CollectiveQuestion>(Collective{
      "broadcast",
      "how long does a broadcast of N bytes take, until each rank has it and until all have?",
      "Prints medians in microseconds, of the system's own broadcast (library) and of a tree made by hand of sends "
      "and receives. reply: until a rank's answer is back at rank 0. latency: among many broadcasts in a row, until "
      "the last rank has it.\n"
      "\n"
      "Examples:\n"
      "  tonari bench broadcast --quick\n"
      "  tonari bench broadcast --ranks 4,16 --sizes 8-1M --rival openmpi,mpich --json broadcast.json",
      Sizes{"Bytes a broadcast", "8,64,512,4K,16K,64K,256K,1M", "8,1K,64K"},
      {"latency", "reply"}});
}

std::unique_ptr<Question> make_allreduce() {
  return std::make_unique<CollectiveQuestion>(
      Collective{"allreduce",
                 "how long does an all-reduce of N bytes take?",
                 "Prints the time of a sum of doubles, in place, among many in a row, the median of all rounds, in "
                 "microseconds.\n"
                 "\n"
                 "Examples:\n"
                 "  tonari bench allreduce --quick\n"
                 "  tonari bench allreduce --ranks 4,16 --sizes 8-1M --rival openmpi,mpich --json allreduce.json",
                 Sizes{"Bytes a rank, multiples of 8", "8,64,512,4K,16K,64K,256K,1M", "8,1K,64K", sizeof(double)},
                 {"latency"}});
}

std::unique_ptr<Question> make_alltoall() {
  return std::make_unique<CollectiveQuestion>(
      Collective{"alltoall",
                 "how long does an all-to-all take, against the number of ranks?",
                 "Prints the time of an all-to-all among many in a row, the median of all rounds, in microseconds.\n"
                 "\n"
                 "Examples:\n"
                 "  tonari bench alltoall --quick\n"
                 "  tonari bench alltoall --ranks 2,4,16 --sizes 8,64K --rival openmpi,mpich --json alltoall.json",
                 Sizes{"Bytes from each rank to each", "8,1K,64K", "8,1K"},
                 {"latency"}});
}

}  // namespace tonari::cli
