// `tonari bench splash_fft`: its options, launches and tables. See measure.hpp.

#include "cli/options.hpp"
#include "cli/table.hpp"
#include "driver/registry.hpp"
#include "driver/table.hpp"

#include "job/arena.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace tonari::bench::driver::splash_fft {

namespace {

constexpr std::size_t points_max = std::size_t{1} << 28;
constexpr std::string_view like_paper = "push points 4096";

/// Tables 2 and 3 of the paper (Sudoh et al.), as printed. One processor has no transfers, and was not projected.
struct PaperRow {
  double ranks;
  std::string_view transfers;
  std::string_view myrinet_ms;
  std::string_view projected_ms;  // Myrinet's - transfers / ranks * (12.78 - 6.15) us
};
constexpr std::array paper_rows{PaperRow{1, "-", "4.13", ""}, PaperRow{2, "128", "3.00", "2.57568"},
                                PaperRow{4, "384", "2.82", "2.18352"}, PaperRow{8, "896", "2.25", "1.50744"}};
constexpr std::string_view myrinet_transfer_us = "12.78";
constexpr std::string_view mlc_transfer_us = "6.15";

class SplashFft final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "splash_fft"; }
  [[nodiscard]] std::string_view asks() const override { return "how fast is SPLASH-2's FFT on one-sided transfers?"; }
  [[nodiscard]] bool has_one_sided_mpi() const override { return true; }
  [[nodiscard]] int default_ranks() const override { return 0; }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool quick) const override {
    // With more ranks than cores MPICH spins in every barrier, so it runs with two.
    if (quick) return {{"", {"--rival", "auto,-mpich"}}};
    return {{"", {"--rival", "auto,-mpich"}},
            {"-pair", {"--ranks", "2", "--rival", "auto"}},
            {"-dealt", {"--ranks", "1,2,4", "--input", "dealt", "--rival", "auto,-mpich"}}};
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints the time of a transform among many in a row, the median of all rounds, in milliseconds; and `push`\n"
           "at 4096 points beside tables 2 and 3 of the MLC-1 paper. It makes as many transfers as the paper counts,\n"
           "128, 384 and 896 on 2, 4 and 8 ranks: one for each sub-row, the numbers of a row that come from one rank\n"
           "(512, 256, 128 bytes), in two of three transpositions; the first needs none where the input is copied.\n"
           "\n"
           "Examples:\n"
           "  tonari bench splash_fft --quick\n"
           "  tonari bench splash_fft --ranks 1,2,4 --sizes 4K,16K,64K,256K,1M --ways push,push-whole\n"
           "  tonari bench splash_fft --input dealt --rival openmpi --json splash_fft.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    command.add_option("-n,--ranks", ranks_, "Numbers of ranks, one after the other")
        ->type_name("LIST")
        ->default_str(fmt::format("{}", fmt::join(ranks(), ",")))
        ->group("Ranks");
    command
        .add_option("--sizes", options.sizes,
                    "Points: a list with K, M for powers of 1024, of squares of numbers that all --ranks divide "
                    "(default: 4K,64K,1M)")
        ->type_name("LIST")
        ->group("The question");
    command
        .add_option(
            "--ways", ways_,
            "How a transposition is made. push: a push for each sub-row. push-256: of at most 256 bytes each. "
            "push-whole: one push_regions for each pair of ranks. pull: a pull for each sub-row. queue: push's, "
            "as a batch of descriptors. all-to-all: messages")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command
        .add_option("--input", input_,
                    "copied: every rank has the whole input, and transposes it by itself. dealt: each has its rows")
        ->type_name("copied|dealt")
        ->check(cli::one_of({"copied", "dealt"}))
        ->capture_default_str()
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"ranks", ranks()},
            {"sizes", sizes(options)},
            {"ways", ways_},
            {"input", input_},
            {"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"time", Better::low}}; }
  void conclude(Results& results) const override;
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  [[nodiscard]] std::vector<int> ranks() const;
  [[nodiscard]] std::vector<std::size_t> sizes(const BenchOptions& options) const;
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 5000 : 30000; }

  std::optional<std::string> ranks_;
  std::string ways_ = "push,push-256,push-whole,pull,queue,all-to-all";
  std::string input_ = "copied";
};

/// Returns 1, 2, 4 and 8, without numbers above four times the cores.
std::vector<int> SplashFft::ranks() const {
  if (ranks_) return parse_ascending("--ranks", *ranks_, 1, job::ranks_per_host_max);
  std::vector<int> usual{1, 2};
  for (const int ranks : {4, 8}) {
    if (ranks <= 4 * cli::usable_cores()) usual.push_back(ranks);
  }
  return usual;
}

std::vector<std::size_t> SplashFft::sizes(const BenchOptions& options) const {
  auto all = parse_sizes("--sizes", options.sizes.value_or(options.quick ? "4K" : "4K,64K,1M"));
  const auto used = ranks();
  for (const auto points : all) {
    const auto side = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(points))));
    const auto divides = [&](int ranks) { return side % static_cast<std::size_t>(ranks) == 0; };
    if (points <= points_max && side > 1 && side * side == points && std::ranges::all_of(used, divides)) continue;
    throw SetupError(
        fmt::format("--sizes: {} is not the square of a multiple of {}; choose squares of common multiples of the "
                    "numbers of ranks, above 1 and up to {}",
                    points, fmt::join(used, ","), points_max));
  }
  return all;
}

std::vector<Launch> SplashFft::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  Ask ask{"splash_fft", options.launch, {}};
  ask.arguments = {
      worker_option("sizes", sizes(options)),
      worker_option("ways",
                    parse_choices("--ways", ways_, {"push", "push-256", "push-whole", "pull", "queue", "all-to-all"})),
      fmt::format("--input={}", input_), fmt::format("--budget-us={}", budget_us(options))};
  std::vector<Launch> launches;
  for (const int ranks : ranks()) {
    ask.launch.ranks = ranks;
    launches.push_back({ask, systems, fmt::format("ranks {}", ranks)});
  }
  return launches;
}

/// Returns the median of a series at x in each round; empty if the series or x is missing.
std::map<int, double> medians_of(const std::vector<Series>& all, SeriesName name, std::string_view metric, double x) {
  name.metric = metric;
  std::map<int, double> medians;
  for (const auto& series : all) {
    if (series.name.system != name.system || series.name.label != name.label || series.name.metric != name.metric ||
        !series.points.contains(x))
      continue;
    for (const auto& [round, samples] : series.points.at(x)) medians[round] = summarize(samples).median;
  }
  return medians;
}

/// Adds the time of a rank per transfer, and the time of the way `queue` by the paper's rule. The paper projected the
/// times of MLC-1 from an interface whose processor handles each transfer: it subtracted the difference of one transfer
/// for each transfer of a rank. Here `push` stands for MLC-1.
void SplashFft::conclude(Results& results) const {
  const auto measured = results.series();
  for (const auto& series : measured) {
    const auto& name = series.name;
    if (name.metric != "transfer") continue;
    for (const auto& [x, rounds] : series.points) {
      const auto transfers = medians_of(measured, name, "transfers", x);
      const auto times = medians_of(measured, name, "time", x);
      auto pushes = name;
      const bool is_queue = name.label.starts_with("queue ");
      if (is_queue) pushes.label = "push " + name.label.substr(6);
      const auto push_ms = medians_of(measured, pushes, "transfer", x);
      for (const auto& [round, in_transfers_ms] : medians_of(measured, name, "transfer", x)) {
        if (!transfers.contains(round) || transfers.at(round) == 0) continue;
        results.add(round, {name.system, name.label, "per-transfer", "us", name.x}, x,
                    {in_transfers_ms * 1000 * x / transfers.at(round)});
        if (!is_queue || !times.contains(round) || !push_ms.contains(round)) continue;
        results.add(round, {name.system, name.label, "by-rule", "ms", name.x}, x,
                    {times.at(round) - (in_transfers_ms - push_ms.at(round))});
      }
    }
  }
}

/// Prints one row per system and number of ranks in the paper, with the paper's two systems.
std::string tell_beside_paper(const Results& results) {
  std::vector<std::vector<std::string>> rows{{"ranks", "system", "transfers", "ms", "us per transfer"}};
  bool measured = false;
  for (const auto& paper : paper_rows) {
    const auto ranks = fmt::format("{:.0f}", paper.ranks);
    const std::string none = "-";
    for (const auto& series : results.series()) {
      if (series.name.metric != "time" || series.name.label != like_paper || !series.points.contains(paper.ranks)) {
        continue;
      }
      const double transfers = results.beside(series.name, "transfers").summary(paper.ranks).median;
      const double in_transfers_ms = results.beside(series.name, "transfer").summary(paper.ranks).median;
      rows.push_back({ranks, series.name.system, fmt::format("{:.0f}", transfers),
                      format_number(series.summary(paper.ranks).median),
                      transfers == 0 ? none : format_number(in_transfers_ms * 1000 * paper.ranks / transfers)});
      measured = true;
    }
    const bool alone = paper.projected_ms.empty();
    rows.push_back({ranks, "MLC/Myrinet (paper)", std::string(paper.transfers), std::string(paper.myrinet_ms),
                    alone ? none : std::string(myrinet_transfer_us)});
    if (!alone) {
      rows.push_back({ranks, "MLC-1 (paper, projected)", std::string(paper.transfers), std::string(paper.projected_ms),
                      std::string(mlc_transfer_us)});
    }
  }
  return measured
             ? fmt::format("\n{}, beside tables 2 and 3 of the MLC-1 paper\n{}", like_paper, cli::format_table(rows))
             : "";
}

std::string SplashFft::tell(const Results& results) const {
  return Question::tell(results) + tell_beside_paper(results) +
         tell_residuals(results, "max |X' - X| / (max |X| ln(n) eps)", "transforms", "HPC Challenge");
}

const Registered<SplashFft> registered(Topic::applications, 3);

}  // namespace

}  // namespace tonari::bench::driver::splash_fft
