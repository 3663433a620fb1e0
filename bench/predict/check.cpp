#include "predict/check.hpp"

#include "cli/launch.hpp"
#include "cli/table.hpp"
#include "driver/question.hpp"
#include "predict/workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tonari::bench::predict {

namespace {

// The suites measure many collectives in a row.
constexpr int repeats = 20;
constexpr int checked_ranks_max = 8;

struct Suite {
  Collective collective;
  const char* question;
  bool has_sizes;
};
constexpr Suite suites[]{{Collective::barrier, "barrier", false},
                         {Collective::broadcast, "broadcast", true},
                         {Collective::all_reduce, "allreduce", true}};

std::string label_of(const Suite& suite, int ranks) {
  switch (suite.collective) {
    case Collective::barrier: return "barrier";
    case Collective::broadcast: return fmt::format("library ranks {}", ranks);
    default: return fmt::format("ranks {}", ranks);
  }
}

std::string note_of(const Suite& suite, int ranks) { return fmt::format(" {} of {} ranks", suite.question, ranks); }

double predicted_us(const Parameters& parameters, Collective collective, std::size_t bytes, int ranks) {
  const int cores = cli::usable_cores();
  const Shape shape{.ranks = ranks, .cores = ranks > cores ? cores : 0};
  const LocalCosts costs{parameters.copy_us_per_byte, parameters.fold_us_per_byte};
  return simulate(parameters, shape, record(collective, bytes, shape, costs, repeats)).time_us / repeats;
}

}  // namespace

int ranks_sharing_cores() {
  const int cores = cli::usable_cores();
  return cores < checked_ranks_max ? std::min(2 * cores, checked_ranks_max) : 0;
}

// The predicted time grows with switch_us, so its value is found by halving an interval.
double fit_switch_us(Parameters parameters, double measured_us) {
  double low = 0;
  double high = measured_us;
  for (int i = 0; i < 30; ++i) {
    parameters.switch_us = (low + high) / 2;
    const bool is_short = predicted_us(parameters, Collective::barrier, 0, ranks_sharing_cores()) < measured_us;
    (is_short ? low : high) = parameters.switch_us;
  }
  return low;
}

std::vector<Checked> check(const Parameters& parameters, const std::string& network, bool quick) {
  const std::vector<int> ranks = quick ? std::vector{2, 3} : std::vector{2, 3, 4, 6, checked_ranks_max};
  const std::vector<std::size_t> sizes = quick ? std::vector<std::size_t>{8} : std::vector<std::size_t>{8, 1024, 65536};
  std::vector<Asked> asks;
  for (const int count : ranks) {
    cli::LaunchOptions launch;
    launch.ranks = count;
    launch.apart = "network";
    launch.network = network;
    for (const auto& suite : suites) {
      driver::Ask ask{suite.question, launch, {fmt::format("--budget-us={}", quick ? 5'000 : 50'000)}};
      if (suite.has_sizes) ask.arguments.push_back(driver::worker_option("sizes", sizes));
      asks.push_back({std::move(ask), note_of(suite, count)});
    }
  }
  const auto results = run_workers(asks, quick ? 1 : 5);
  std::vector<Checked> all;
  for (const auto& suite : suites) {
    for (const int count : ranks) {
      const auto& series = series_of(results, note_of(suite, count), label_of(suite, count), "latency");
      for (const auto& [x, rounds] : series.points) {
        if (suite.collective == Collective::barrier && count == ranks_sharing_cores()) continue;
        const std::size_t bytes = suite.has_sizes ? static_cast<std::size_t>(x) : 0;
        all.push_back({suite.collective, count, bytes, predicted_us(parameters, suite.collective, bytes, count),
                       median_at(series, x), count > cli::usable_cores()});
      }
    }
  }
  return all;
}

double median_error(const std::vector<Checked>& all) {
  std::vector<double> errors;
  for (const auto& one : all) errors.push_back(std::fabs(one.error()));
  std::ranges::sort(errors);
  return driver::quantile(errors, 0.5);
}

std::string tell_checked(const std::vector<Checked>& all) {
  std::vector<std::vector<std::string>> rows{
      {"operation", "ranks", "bytes", "predicted, us", "measured, us", "error, %"}};
  std::vector<Checked> with_own_cores;
  for (const auto& one : all) {
    rows.push_back({std::string(name_of(one.collective)), std::to_string(one.ranks), std::to_string(one.bytes),
                    driver::format_number(one.predicted_us), driver::format_number(one.measured_us),
                    fmt::format("{:.0f}", 100 * one.error())});
    if (!one.shares_cores) with_own_cores.push_back(one);
  }
  std::string text = cli::format_table(rows) + fmt::format("\nmedian error {:.0f} %", 100 * median_error(all));
  if (with_own_cores.size() != all.size() && !with_own_cores.empty()) {
    text += fmt::format("; of ranks with a core each {:.0f} %", 100 * median_error(with_own_cores));
  }
  return text + "\n";
}

nlohmann::ordered_json checked_as_json(const std::vector<Checked>& all) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& one : all) {
    list.push_back({{"operation", name_of(one.collective)},
                    {"ranks", one.ranks},
                    {"bytes", one.bytes},
                    {"predicted_us", one.predicted_us},
                    {"measured_us", one.measured_us},
                    {"error", one.error()},
                    {"shares_cores", one.shares_cores}});
  }
  return list;
}

}  // namespace tonari::bench::predict
