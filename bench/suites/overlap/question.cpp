// `tonari bench overlap`: its options, launches and tables. See measure.hpp.

#include "cli/options.hpp"
#include "cli/table.hpp"
#include "driver/registry.hpp"
#include "driver/table.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::driver::overlap {

namespace {

constexpr int blocks_max = 1000;
constexpr int slowed_max = 1000;
constexpr int slowed_full = 3;
constexpr int traffic_ranks = 2;  // as traffic.hpp has them

class Overlap final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "overlap"; }
  [[nodiscard]] std::string_view asks() const override {
    return "does a transfer go on while the ranks compute, and what does that cost them?";
  }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool quick) const override {
    if (quick) {
      return {
          {"", {"--rival", "auto"}}, {"-blocks", {"--sweep", "blocks"}}, {"-ranks", {"--sweep", "ranks", "-n", "4"}}};
    }
    // The matrix product of the Paragon study, with its order, blocks and ranks varied in turn; then all other cases.
    return {{"", {"--rival", "auto"}},
            {"-blocks", {"--sweep", "blocks", "--rival", "auto"}},
            {"-ranks", {"--sweep", "ranks", "-n", "4", "--rival", "auto"}},
            {"-plain", {"--kernel", "plain", "--sizes", "300,500,1000", "--rival", "auto"}},
            {"-full", {"--sizes", "1000", "--full", "--rival", "auto"}}};
  }
  [[nodiscard]] std::string_view examples() const override {
    return "A matrix product whose blocks are passed round the ranks. Prints its rate in\n"
           "GFLOP/s, and the milliseconds that ranks sent, computed and waited. Beside\n"
           "tonari: tonari-no-service, whose messages move only while the program is in a\n"
           "call; the last table has the ratios of both, the price of the service thread.\n"
           "\n"
           "Examples:\n"
           "  tonari bench overlap --quick\n"
           "  tonari bench overlap --sweep blocks --sizes 1000 --rival openmpi,mpich --json overlap.json\n"
           "  tonari bench overlap --kernel plain --sizes 1000\n"
           "  tonari bench overlap -n 4 --full --modes blocking/started,started/started";
  }

  void add_options(CLI::App& command, BenchOptions& options) override;
  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"sizes", sizes(options)},       {"sweep", sweep_},    {"blocks", blocks(options)}, {"modes", modes_},
            {"computation", computations()}, {"slowed", slowed()}, {"traffic", traffic()},      {"kernel", kernel_},
            {"budget_s", budget_s(options)}};
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
    const bool over_n = sweep_ == "n";
    const auto* const usual = options.quick ? (over_n ? "100,300" : "300")
                              : over_n      ? "100,200,300,500,700,1000,1500,2000"
                                            : "1000";
    auto all = parse_sizes("--sizes", options.sizes.value_or(usual));
    if (!over_n) all.resize(1);
    return all;
  }
  [[nodiscard]] std::vector<int> blocks(const BenchOptions& options) const {
    const bool over_blocks = sweep_ == "blocks";
    const auto* const usual = !over_blocks ? "4" : options.quick ? "1,4" : "1,2,4,8,16,32,64";
    auto all = parse_ascending("--blocks", blocks_.value_or(usual), 1, blocks_max);
    if (!over_blocks) all.resize(1);
    return all;
  }
  [[nodiscard]] std::string computations() const {
    return computation_.value_or(full_ ? "once,none,tenfold" : "once,none");
  }
  [[nodiscard]] int slowed() const { return slowed_ != 0 ? slowed_ : full_ ? slowed_full : 0; }
  [[nodiscard]] bool traffic() const { return traffic_ || full_; }
  [[nodiscard]] static double budget_s(const BenchOptions& options) { return options.quick ? 0.01 : 0.1; }

  std::string sweep_ = "n";
  std::string kernel_ = "blas";
  std::optional<std::string> blocks_;
  std::string modes_ =
      "buffered/blocking,blocking/started,posted/started,started/blocking,started/started,started-posted/started";
  std::optional<std::string> computation_;
  int slowed_ = 0;
  bool traffic_ = false;
  bool full_ = false;
};

void Overlap::add_options(CLI::App& command, BenchOptions& options) {
  command
      .add_option("--sizes", options.sizes,
                  "Orders of the matrices: a list, and ranges that double (default: "
                  "100,200,300,500,700,1000,1500,2000; if another thing is varied: 1000)")
      ->type_name("LIST")
      ->group("The question");
  command
      .add_option("--sweep", sweep_,
                  "The varied quantity. n: the order. blocks: the blocks of each rank, for the first order. ranks: "
                  "from 1 to -n, "
                  "for the first order")
      ->type_name("n|blocks|ranks")
      ->check(cli::one_of({"n", "blocks", "ranks"}))
      ->capture_default_str()
      ->group("The question");
  command
      .add_option("--blocks", blocks_,
                  "Blocks of columns that each rank has, from 1 to 1000: a list for --sweep blocks (default: "
                  "1,2,4,8,16,32,64), else a number (default: 4)")
      ->type_name("LIST")
      ->group("The question");
  command
      .add_option("--modes", modes_,
                  "SEND/RECEIVE: buffered/blocking, blocking/started, posted/started, started/blocking, "
                  "started/started, started-posted/started (default: all). Sends are called before a block's "
                  "computation. buffered: of a copy. posted: until the receive is found posted. started: completed "
                  "after it. Receives are blocking, after the computation, or started before it")
      ->type_name("LIST")
      ->group("The question");
  command
      .add_option("--computation", computation_,
                  "once: as it must be. none: transfers alone. tenfold: each block ten times (default: once,none; with "
                  "--full all)")
      ->type_name("LIST")
      ->group("The question");
  command
      .add_option("--kernel", kernel_,
                  "blas: the library's matrix product, which reads memory seldom. plain: the study's, an inner product "
                  "for each element, which reads much memory")
      ->type_name("plain|blas")
      ->check(cli::one_of({"plain", "blas"}))
      ->capture_default_str()
      ->group("The question");
  command.add_option("--slowed", slowed_, "Measure also with a rank, the last, that computes each block so many times")
      ->type_name("N")
      ->transform(cli::whole_number("a number of times", 2, slowed_max))
      ->group("The question");
  command
      .add_flag("--traffic", traffic_,
                "Measure also while two ranks more than -n stream messages of 1 MiB from one to the other")
      ->disable_flag_override()
      ->group("The question");
  command.add_flag("--full", full_, "All computations; also --slowed 3 and --traffic")
      ->disable_flag_override()
      ->group("The question");
}

std::vector<Launch> Overlap::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  const bool over_ranks = sweep_ == "ranks";
  Ask ask{"overlap", options.launch, {}};
  ask.arguments = {
      worker_option("sizes", sizes(options)),
      worker_option("blocks", blocks(options)),
      worker_option("modes", parse_choices("--modes", modes_,
                                           {"buffered/blocking", "blocking/started", "posted/started",
                                            "started/blocking", "started/started", "started-posted/started"})),
      worker_option("computation", parse_choices("--computation", computations(), {"once", "none", "tenfold"})),
      fmt::format("--kernel={}", kernel_),
      fmt::format("--x={}", sweep_),
      fmt::format("--budget-s={}", budget_s(options))};
  std::vector<Launch> launches;
  // Measures tonari also without its service thread.
  const auto add = [&](const Ask& one, const std::string& note) {
    launches.push_back({one, systems, note});
    if (systems.front().family != Family::tonari) return;
    auto alone = one;
    alone.launch.environment.emplace_back("TONARI_SERVICE_THREAD=off");
    alone.arguments.emplace_back("--name=tonari-no-service");
    launches.push_back({std::move(alone),
                        {{Family::tonari, false}},
                        note.empty() ? "no service" : fmt::format("no service, {}", note)});
  };
  for (int ranks = over_ranks ? 1 : options.launch.ranks; ranks <= options.launch.ranks; ++ranks) {
    ask.launch.ranks = ranks;
    const auto note = over_ranks ? fmt::format("ranks {}", ranks) : std::string();
    const auto add_changed = [&](Ask changed, const std::string& how) {
      changed.arguments.emplace_back("--computation=once");  // the later option overrides the former
      changed.arguments.push_back("--note= " + how);
      add(changed, note.empty() ? how : fmt::format("{}, {}", how, note));
    };
    add(ask, note);
    if (slowed() != 0) {
      auto changed = ask;
      changed.arguments.push_back(fmt::format("--slowed={}", slowed()));
      add_changed(std::move(changed), fmt::format("slowed {}x", slowed()));
    }
    if (traffic()) {
      auto changed = ask;
      changed.launch.ranks += traffic_ranks;
      changed.arguments.emplace_back("--traffic=yes");
      add_changed(std::move(changed), "traffic");
    }
  }
  return launches;
}

/// Returns the table of ratios: a time with the service thread divided by the same time without the thread.
std::string tell_service(const Results& results) {
  std::vector<std::vector<std::string>> rows{{"with the service thread / without", "", "product", "compute", "wait"}};
  bool has_intervals = false;
  for (const auto& series : results.series()) {
    if (series.name.metric != "compute" || series.name.system != "tonari") continue;
    const auto ratio = [&](std::string_view metric, double x) {
      auto name = results.beside(series.name, metric).name;
      const auto& with = results.beside(name, metric);
      name.system = "tonari-no-service";
      const auto without = std::ranges::find(results.series(), name, &Series::name);
      if (without == results.series().end()) return std::string("-");
      // The time of a product is the inverse of its rate.
      auto text =
          metric == "rate" ? format_ratio(results, *without, with, x) : format_ratio(results, with, *without, x);
      has_intervals |= text.ends_with('%');
      return text;
    };
    const bool computes = series.name.label.find(" none") == std::string::npos;
    for (const auto& [x, rounds] : series.points) {
      rows.push_back({series.name.label, fmt::format("{} {:.0f}", series.name.x, x), computes ? ratio("rate", x) : "-",
                      computes ? ratio("compute", x) : "-", ratio("wait", x)});
    }
  }
  return rows.size() == 1 ? "" : "\n" + cli::format_table(rows) + (has_intervals ? legend_of_ratios() : "");
}

std::string Overlap::tell(const Results& results) const {
  return Question::tell(results) + tell_service(results) + tell_residuals(results, "||AB - I|| / (n eps)", "products");
}

const Registered<Overlap> registered(Topic::applications, 2);

}  // namespace

}  // namespace tonari::bench::driver::overlap
