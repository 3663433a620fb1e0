// `tonari bench lu`: its options, launches and tables. See measure.hpp.

#include "cli/options.hpp"
#include "driver/registry.hpp"
#include "driver/table.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

namespace tonari::bench::driver::lu {

namespace {

constexpr int block_max = 100'000;

class Lu final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "lu"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how fast is a parallel LU factorisation, and where does its time go?";
  }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool /*quick*/) const override {
    // Figure 10 of the Paragon study varies the ranks.
    return {{"", {"--rival", "auto"}}, {"-ranks", {"--sweep", "ranks", "-n", "4"}}};
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the rate in GFLOP/s, and the seconds that ranks sent, computed and waited.\n"
           "\n"
           "Examples:\n"
           "  tonari bench lu --quick\n"
           "  tonari bench lu -n 4 --sizes 500-4000 --modes blocking,started\n"
           "  tonari bench lu --sweep ranks -n 8 --rival openmpi --json lu.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    command
        .add_option("--sizes", options.sizes,
                    "Orders of the matrix: a list, and ranges that double (default: 250,500,1000,2000; with --sweep "
                    "ranks: 1000)")
        ->type_name("LIST")
        ->group("The question");
    command
        .add_option("--sweep", sweep_, "The varied quantity. n: the order. ranks: from 1 to -n, for the first order")
        ->type_name("n|ranks")
        ->check(cli::one_of({"n", "ranks"}))
        ->capture_default_str()
        ->group("The question");
    command
        .add_option(
            "--modes", modes_,
            "blocking: send and receive. started-receive: the next column's receive is started before the update. "
            "started: broadcasts that go on during the update")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command.add_option("--block", block_, "Columns that are factored and sent at a time; 1 is the paper's program")
        ->type_name("N")
        ->transform(cli::whole_number("a number of columns", 1, block_max))
        ->capture_default_str()
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"sizes", sizes(options)}, {"sweep", sweep_}, {"modes", modes_}, {"block", block_}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{"rate", Better::high},
            {"send", Better::neither, Metric::Form::mean_and_spread},
            {"compute", Better::neither, Metric::Form::mean_and_spread},
            {"wait", Better::neither, Metric::Form::mean_and_spread}};
  }
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  [[nodiscard]] std::vector<std::size_t> sizes(const BenchOptions& options) const {
    const auto* const usual = options.quick ? "200,400" : sweep_ == "ranks" ? "1000" : "250,500,1000,2000";
    return parse_sizes("--sizes", options.sizes.value_or(usual));
  }

  std::string sweep_ = "n";
  std::string modes_ = "blocking,started-receive,started";
  int block_ = 1;
};

std::vector<Launch> Lu::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  const bool over_ranks = sweep_ == "ranks";
  auto orders = sizes(options);
  if (over_ranks) orders.resize(1);
  Ask ask{"lu", options.launch, {}};
  ask.arguments = {worker_option("sizes", orders),
                   worker_option("modes", parse_choices("--modes", modes_, {"blocking", "started-receive", "started"})),
                   fmt::format("--block={}", block_), fmt::format("--x={}", over_ranks ? "ranks" : "n"),
                   fmt::format("--budget-s={}", options.quick ? 0.1 : 0.3)};
  std::vector<Launch> launches;
  for (int ranks = over_ranks ? 1 : options.launch.ranks; ranks <= options.launch.ranks; ++ranks) {
    ask.launch.ranks = ranks;
    launches.push_back({ask, systems, over_ranks ? fmt::format("ranks {}", ranks) : ""});
  }
  return launches;
}

std::string Lu::tell(const Results& results) const {
  return Question::tell(results) + tell_residuals(results, "||PA - LU|| / (n ||A|| eps)", "factorisations");
}

const Registered<Lu> registered(Topic::applications, 1);

}  // namespace

}  // namespace tonari::bench::driver::lu
