// `tonari bench series`: its options, launches and tables. The worker is that of pingpong.

#include "cli/options.hpp"
#include "cli/table.hpp"
#include "cli/topology.hpp"
#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <hwloc/glibc-sched.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace tonari::bench::driver::series {

namespace {

constexpr int exchanges_max = 1000;

/// The processors of two cores, as the system numbers them.
using Pair = std::array<unsigned, 2>;

/// Returns pairs of cores that this process may use: "near", the pair that shares a cache and the most else, and "far",
/// the pair that shares no cache and the least else. A pair that this machine lacks is left out.
std::map<std::string, Pair> pairs_here() {
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) return {};
  const cli::Topology topology = cli::load_topology(false);
  std::vector<hwloc_obj_t> processors;  // one a core
  for (hwloc_obj_t core = nullptr;
       (core = ::hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr;) {
    for (hwloc_obj_t one = nullptr; (one = ::hwloc_get_next_obj_inside_cpuset_by_type(topology.get(), core->cpuset,
                                                                                      HWLOC_OBJ_PU, one)) != nullptr;) {
      if (!CPU_ISSET(one->os_index, &mine)) continue;
      processors.push_back(one);
      break;
    }
  }

  std::map<std::string, Pair> pairs;
  std::map<std::string, int> depths;  // of the closest common ancestor of the pair; the root has 0
  for (std::size_t right = 1; right < processors.size(); ++right) {
    for (std::size_t left = 0; left < right; ++left) {
      const auto* const common = ::hwloc_get_common_ancestor_obj(topology.get(), processors[left], processors[right]);
      const auto* shared = common;
      while (shared != nullptr && !::hwloc_obj_type_is_dcache(shared->type)) shared = shared->parent;
      const std::string name = shared != nullptr ? "near" : "far";
      const auto known = depths.find(name);
      if (known != depths.end() &&
          (shared != nullptr ? known->second >= common->depth : known->second <= common->depth))
        continue;
      depths[name] = common->depth;
      pairs[name] = {processors[left]->os_index, processors[right]->os_index};
    }
  }
  return pairs;
}

class SeriesQuestion final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "series"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how much do the times of many equal messages differ, between cores that share a cache and cores that share "
           "none?";
  }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool /*quick*/) const override {
    return {{"", {"--rival", "auto"}}, {"-network", {"--apart", "network", "--network", "tcp", "--rival", "auto"}}};
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints half the round trip in microseconds, each of one message, and the rate at the median. Near cores "
           "share a cache, far cores share "
           "none; with --bind none the ranks run where the system puts them. --json keeps every time, in the order "
           "measured.\n"
           "\n"
           "Examples:\n"
           "  tonari bench series --quick\n"
           "  tonari bench series --rival openmpi,mpich --json series.json\n"
           "  tonari bench series --apart network --network tcp --rival openmpi,mpich";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    add_sizes(command, options, "Bytes per message", usual_sizes);
    command
        .add_option("--exchanges", exchanges_,
                    fmt::format("Round trips of a series, each timed by itself, from 1 to {}", exchanges_max))
        ->type_name("N")
        ->capture_default_str()
        ->transform(cli::whole_number("a number of round trips", 1, exchanges_max))
        ->group("The question");
    command
        .add_option("--buffers", buffers_, "warm: the same buffer each time. cold: another, out of the caches' reach")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command
        .add_option("--cores", cores_,
                    fmt::format("near: two that share a cache. far: two that share none (default: {})", usual_cores))
        ->type_name("LIST")
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"sizes", sizes(options)}, {"exchanges", exchanges_}, {"buffers", buffers_}, {"cores", cores()}};
  }
  void conclude(Results& results) const override { add_rates(results); }
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"latency", Better::low}}; }
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  static constexpr const char* usual_sizes = "1M";
  static constexpr const char* usual_cores = "near,far";

  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    return parse_sizes("--sizes", options.sizes.value_or(usual_sizes));
  }

  [[nodiscard]] std::string cores() const { return cores_.value_or(usual_cores); }

  int exchanges_ = 100;
  std::string buffers_ = "warm,cold";
  std::optional<std::string> cores_;
};

std::vector<Launch> SeriesQuestion::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks != 2) throw SetupError("series needs two ranks, no more: -n 2");
  if (without(systems, Family::ucx).size() != systems.size()) {
    throw SetupError("--rival ucx: ucx_perftest reports no single times; `tonari bench pingpong` measures it");
  }
  const bool binds = options.launch.bind != "none";
  if (!binds && cores_) throw SetupError("--cores binds the ranks, and --bind none does not: leave one of them out");
  const auto chosen = parse_choices("--cores", cores(), {"near", "far"});
  const Ask ask{"pingpong",
                options.launch,
                {worker_option("sizes", sizes(options)),
                 worker_option("buffers", parse_choices("--buffers", buffers_, {"warm", "cold"})),
                 fmt::format("--exchanges={}", exchanges_)}};
  if (!binds) return {{ask, systems, ""}};

  const auto pairs = pairs_here();
  std::vector<Launch> launches;
  for (const auto& name : chosen) {
    const auto pair = pairs.find(name);
    if (pair == pairs.end()) continue;
    auto pinned = ask;
    pinned.launch.bind = "none";  // the ranks bind themselves
    pinned.arguments.push_back(worker_option("processors", pair->second));
    pinned.arguments.push_back("--note= " + name);
    launches.push_back({std::move(pinned), systems, name});
  }
  if (launches.empty()) {
    throw SetupError(fmt::format("--cores {}: there are no such two cores here; --bind none asks without", cores()));
  }
  return launches;
}

std::string SeriesQuestion::tell(const Results& results) const {
  struct Table {
    std::string title;
    std::vector<std::vector<std::string>> rows;
  };
  std::vector<Table> tables;  // of a case and a size, in the order measured
  for (const auto& series : results.series()) {
    if (series.name.metric != "latency") continue;
    for (const auto& point : series.points) {
      const auto title = fmt::format("{}, {}: latency, us", series.name.label, format_bytes(point.first));
      auto table = std::ranges::find(tables, title, &Table::title);
      if (table == tables.end()) {
        table =
            tables.insert(table, {title, {{"system", "min", "median", "mean", "max", "deviation", "samples", "MB/s"}}});
      }
      auto& row = table->rows.emplace_back();
      row.push_back(series.name.system);
      const auto said = series.summary(point.first);
      for (const double value : {said.min, said.median, said.mean, said.max, said.stddev}) {
        row.push_back(format_number(value));
      }
      row.push_back(std::to_string(said.n));
      row.push_back(format_number(point.first / said.median));
    }
  }
  std::string text;
  for (const auto& [title, rows] : tables) text += fmt::format("\n{}\n{}", title, cli::format_table(rows));

  const auto measured = [&](std::string_view cores) {
    return std::ranges::any_of(results.series(),
                               [&](const auto& series) { return series.name.label.ends_with(cores); });
  };
  const std::string chosen = this->cores();
  const auto missed = [&](std::string_view cores, std::string_view other) {
    return chosen.find(cores.substr(1)) != chosen.npos && measured(other) && !measured(cores);
  };
  if (missed(" far", " near")) text += "\nfar: not measured, all cores that may be used share a cache\n";
  if (missed(" near", " far")) text += "\nnear: not measured, no two cores that may be used share a cache\n";
  return text;
}

const Registered<SeriesQuestion> registered(Topic::messages, 2);

}  // namespace

}  // namespace tonari::bench::driver::series
