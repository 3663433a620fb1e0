// `tonari bench pingpong`: its options, launches and tables. See measure.hpp.

#include "cli/table.hpp"
#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::driver::pingpong {

namespace {

constexpr std::size_t head_payload_bytes = 48;

class Pingpong final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "pingpong"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does a message of N bytes take from one rank to another?";
  }
  [[nodiscard]] bool has_ucx() const override { return true; }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints half the round trip, the median of all rounds, in microseconds.\n"
           "\n"
           "Examples:\n"
           "  tonari bench pingpong --quick\n"
           "  tonari bench pingpong --sizes 8,64-4K --receivers posted --split 0,16,32\n"
           "  tonari bench pingpong --rival openmpi,mpich --json pingpong.json\n"
           "  tonari bench pingpong --apart network --network tcp --rival openmpi,mpich,ucx";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    add_sizes(command, options, "Bytes per message", usual_sizes);
    command
        .add_option("--buffers", buffers_, "warm: the same buffer each time. cold: another, out of the caches' reach")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command
        .add_option(
            "--receivers", receivers_,
            "blocking: called after the send. posted: started before the message can arrive. unexpected: called "
            "after it has arrived")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command
        .add_option("--split", split_,
                    "Measure also with so many bytes of payload kept in a head (TONARI_SPLIT), each from 0 to 48")
        ->type_name("LIST")
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override;
  void conclude(Results& results) const override;
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{"latency", Better::low},
            {"rate", Better::neither},
            {"t0", Better::low, Metric::Form::untold},
            {"t1", Better::low, Metric::Form::untold}};
  }
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  static constexpr const char* usual_sizes = "8,40,64-64M";

  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    const auto* const usual = options.quick ? "8,40,64,512,4K,16K,64K,1M" : usual_sizes;
    return parse_sizes("--sizes", options.sizes.value_or(usual));
  }
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 4000 : 12000; }
  [[nodiscard]] std::vector<int> splits() const;

  std::string buffers_ = "warm,cold";
  std::string receivers_ = "blocking,posted,unexpected";
  std::string split_;
};

std::vector<int> Pingpong::splits() const {
  return parse_numbers("--split", split_, 0, static_cast<int>(head_payload_bytes));
}

std::vector<Launch> Pingpong::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks < 2) throw SetupError("pingpong needs two ranks: -n 2");
  const auto all_sizes = sizes(options);
  Ask ask{"pingpong", options.launch, {}};
  ask.arguments = {
      worker_option("sizes", all_sizes),
      worker_option("buffers", parse_choices("--buffers", buffers_, {"warm", "cold"})),
      worker_option("receivers", parse_choices("--receivers", receivers_, {"blocking", "posted", "unexpected"})),
      fmt::format("--budget-us={}", budget_us(options))};
  std::vector<Launch> launches;
  const auto add = [&](std::vector<System> of) {
    if (!of.empty()) launches.push_back({ask, std::move(of), ""});
  };
  add(without(systems, Family::ucx));
  const bool asks_ucx = std::ranges::find(systems, System{Family::ucx, false}) != systems.end();
  if (asks_ucx && buffers_.find("warm") != buffers_.npos) add({{Family::ucx, false}});
  const bool asks_tonari = systems.front().family == Family::tonari;
  for (const int split : asks_tonari ? splits() : std::vector<int>{}) {
    auto changed = ask;
    changed.launch.environment.push_back(fmt::format("TONARI_SPLIT={}", split));
    changed.arguments.push_back(fmt::format("--note= split {}", split));
    launches.push_back({std::move(changed), {{Family::tonari, false}}, fmt::format("split {}", split)});
  }
  std::vector<std::size_t> short_sizes;
  std::ranges::copy_if(all_sizes, std::back_inserter(short_sizes),
                       [](auto bytes) { return bytes <= head_payload_bytes; });
  if (!short_sizes.empty()) {
    ask.arguments.push_back(worker_option("sizes", short_sizes));  // the later option overrides the former
    ask.launch.ranks = 2;
    launches.push_back({std::move(ask), {{Family::ring, false}}, ""});
  }
  return launches;
}

nlohmann::ordered_json Pingpong::parameters(const BenchOptions& options) const {
  return {{"sizes", sizes(options)},
          {"buffers", buffers_},
          {"receivers", receivers_},
          {"split", splits()},
          {"budget_us", budget_us(options)}};
}

/// Adds rates; and t0, t1 and the half-performance length of each case: a sample a round.
void Pingpong::conclude(Results& results) const {
  add_rates(results);
  const auto measured = results.series();
  for (const auto& series : measured) {
    if (series.name.metric != "latency" || series.points.size() < 3) continue;
    const double longest = series.points.rbegin()->first;
    for (const auto& [number, line] : series.lines(fit_relative)) {
      const int round = number;
      const auto add = [&](std::string metric, std::string unit, double value) {
        results.add(round, {series.name.system, series.name.label, std::move(metric), std::move(unit), "bytes up to"},
                    longest, {value});
      };
      add("t0", "us", line.at_zero);
      add("t1", "ns/B", line.slope * 1000);
      add("half-performance length", "B", line.at_zero / line.slope);
    }
  }
}

std::string Pingpong::tell(const Results& results) const {
  auto text = Question::tell(results);
  std::vector<std::vector<std::string>> rows{{"fit t0 + n * t1", "system", "t0, us", "t1, ns/B", "GB/s", "half at, B"}};
  for (const auto& series : results.series()) {
    if (series.name.metric != "t0") continue;
    const double t1 = results.median_beside(series.name, "t1");
    rows.push_back({series.name.label, series.name.system, format_number(results.median_beside(series.name, "t0")),
                    format_number(t1), format_number(1 / t1),
                    format_number(results.median_beside(series.name, "half-performance length"))});
  }
  return rows.size() == 1 ? text : text + "\n" + cli::format_table(rows);
}

const Registered<Pingpong> registered(Topic::messages, 1);

}  // namespace

}  // namespace tonari::bench::driver::pingpong
