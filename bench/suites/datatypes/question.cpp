// `tonari bench datatypes`: its options, launches and tables. See mpi.cpp.

#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tonari::bench::driver::datatypes {

namespace {

constexpr std::size_t bytes_min = 64;
constexpr std::size_t bytes_max = std::size_t{16} << 20;
constexpr std::string_view by_hand = " by-hand";

class Datatypes final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "datatypes"; }
  [[nodiscard]] std::string_view asks() const override {
    return "what does a message of data with gaps cost, by an MPI datatype and packed by hand?";
  }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints half the round trip in microseconds, the median of all rounds, of a column of a matrix, a face of a "
           "box, and an array of structs; then the time of each datatype divided by that of the program's own packing "
           "loop. Measures tonari's MPI, as system tonari-mpi.\n"
           "\n"
           "Examples:\n"
           "  tonari bench datatypes --quick\n"
           "  tonari bench datatypes --cases column --sizes 1K-64K --rival mpich-default\n"
           "  tonari bench datatypes --rival openmpi-default,mpich-default --json datatypes.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    add_sizes(command, options, "Bytes without gaps, powers of two from 64 to 16 MiB",
              "1K,4K,16K,64K,256K,1M,4M, with --quick 1K,64K");
    command.add_option("--cases", cases_, "column: of a matrix. face: of a box. structs: an array of structs")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"sizes", sizes(options)}, {"cases", cases_}, {"budget_us", budget_us(options)}};
  }
  void conclude(Results& results) const override;
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{"latency", Better::low}, {"to by-hand", Better::neither}};
  }

 private:
  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    const auto* const usual = options.quick ? "1K,64K" : "1K,4K,16K,64K,256K,1M,4M";
    return parse_sizes("--sizes", options.sizes.value_or(usual));
  }
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 5000 : 50'000; }

  std::string cases_ = "column,face,structs";
};

std::vector<Launch> Datatypes::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks != 2) throw SetupError("datatypes needs two ranks, no more: -n 2");
  const auto all_sizes = sizes(options);
  for (const auto size : all_sizes) {
    if (std::has_single_bit(size) && size >= bytes_min && size <= bytes_max) continue;
    throw SetupError(fmt::format("--sizes: {} is no power of two from 64 to 16M", size));
  }
  const auto cases = parse_choices("--cases", cases_, {"column", "face", "structs"});
  Ask ask{"datatypes", options.launch, {}};
  ask.arguments = {worker_option("sizes", all_sizes), worker_option("cases", cases),
                   fmt::format("--budget-us={}", budget_us(options))};
  Launch launch{std::move(ask), {}, ""};
  for (auto system : systems) {
    if (system.family == Family::tonari) system.family = Family::tonari_mpi;  // datatypes are MPI's
    if (std::ranges::count(launch.systems, system) == 0) launch.systems.push_back(system);
  }
  return {launch};
}

/// Adds each datatype's time divided by that of the packing loop.
void Datatypes::conclude(Results& results) const {
  const auto measured = results.series();
  for (const auto& series : measured) {
    if (series.name.label.ends_with(by_hand)) continue;
    auto other = series.name;
    other.label += by_hand;
    const auto packed = std::ranges::find(measured, other, &Series::name);
    if (packed == measured.end()) continue;
    for (const auto& [x, rounds] : series.points) {
      for (const auto& [round, samples] : rounds) {
        if (!packed->points.contains(x) || !packed->points.at(x).contains(round)) continue;
        const double ratio = summarize(samples).median / summarize(packed->points.at(x).at(round)).median;
        results.add(round, {series.name.system, series.name.label, "to by-hand", "", "bytes"}, x, {ratio});
      }
    }
  }
}

const Registered<Datatypes> registered(Topic::messages, 4);

}  // namespace

}  // namespace tonari::bench::driver::datatypes
