#include "driver/comparing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace tonari::bench::driver {

namespace {

/// JSON has no infinity: a bound that is not known is null.
nlohmann::ordered_json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

nlohmann::ordered_json as_json(const Results& results, const Series& ours, const Series& theirs, double x) {
  const auto comparison = compare(ours, theirs, x);
  const double noise = smallest_difference(results, ours, comparison, x);
  const bool has_interval = comparison.pairs > 1;
  return {{"system", ours.name.system},
          {"with", theirs.name.system},
          {"case", ours.name.label},
          {"metric", ours.name.metric},
          {"x", x},
          {"ratio", comparison.ratio},
          {"low", has_interval ? number_or_null(comparison.low) : nullptr},
          {"high", number_or_null(comparison.high)},
          {"pairs", comparison.pairs},
          {"smallest_difference", number_or_null(noise)},
          {"differs", is_different(comparison, noise)}};
}

}  // namespace

bool is_reference(std::string_view system) {
  static constexpr std::array<std::string_view, 10> others{"ring", "lhs",       "lhs-128", "lhs-cut", "no-lhs",
                                                           "alpu", "byte-loop", "memcmp",  "memcpy",  "process-vm"};
  return std::ranges::find(others, system) != others.end() || system.starts_with("tonari");
}

bool is_rival(std::string_view system) { return !is_reference(system) && system != "local"; }

double smallest_difference(const Results& results, const Series& ours, const Comparison& comparison, double x) {
  double noise = comparison.smallest_difference();
  if (const auto* const again = results.measured_again(ours)) {
    const auto itself = compare(ours, *again, x);
    if (itself.pairs > 1) noise = std::max(noise, itself.smallest_difference());
  }
  return noise;
}

bool is_different(const Comparison& comparison, double noise) {
  return comparison.differs() && std::fabs(std::log(comparison.ratio)) > std::log1p(noise);
}

std::string tell_noise(const Results& results) {
  std::vector<double> differences;
  for (const auto& series : results.series()) {
    const auto* const again = results.measured_again(series);
    if (again == nullptr) continue;
    for (const auto& point : series.points) {
      const auto itself = compare(series, *again, point.first);
      if (itself.pairs > 1) differences.push_back(std::fabs(std::log(itself.ratio)));
    }
  }
  if (differences.empty()) return "";
  std::ranges::sort(differences);
  return fmt::format(
      "\nnoise: {} differs from itself by {:.1f} % in the median of {} quantities, at most by {:.0f} %\n",
      results.series().front().name.system, std::expm1(quantile(differences, 0.5)) * 100, differences.size(),
      std::expm1(differences.back()) * 100);
}

std::string tell_broken_bounds(const Results& results) {
  constexpr double once_slower = 1.5;  // after one round there is no interval
  // Below 64 KiB the system call of process-vm may take longer than the copy, and tonari's own copies need none.
  struct Bound {
    const char* system;
    double from_x;
  };
  constexpr Bound bounds[]{{"ring", 0}, {"memcpy", 0}, {"process-vm", 65536}};
  std::string text;
  for (const auto& ours : results.series()) {
    const bool is_time = ours.name.metric == "latency";
    if (ours.name.system != "tonari" || (!is_time && ours.name.metric != "rate")) continue;
    for (const auto& [bound, from_x] : bounds) {
      auto name = ours.name;
      name.system = bound;
      const auto theirs = std::ranges::find(results.series(), name, &Series::name);
      if (theirs == results.series().end()) continue;
      for (const auto& [x, rounds] : ours.points) {
        const auto comparison = is_time ? compare(*theirs, ours, x) : compare(ours, *theirs, x);
        if (x < from_x || comparison.pairs == 0 || !(comparison.ratio > 1)) continue;
        const double noise = smallest_difference(results, ours, comparison, x);
        if (comparison.pairs < 2 ? comparison.ratio < once_slower : !is_different(comparison, noise)) continue;
        text += fmt::format(
            "\nbenchmark error: the lower bound {} is {:.2f} times as slow as tonari: {} of {}, {:.0f} {}\n", bound,
            comparison.ratio, ours.name.metric, ours.name.label, x, ours.name.x);
      }
    }
  }
  return text;
}

nlohmann::ordered_json comparisons_as_json(const Results& results) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& ours : results.series()) {
    const auto over = ours.name.system.find(" over ");
    const auto runtime = ours.name.system.substr(0, over);
    if (runtime != "tonari" && runtime != "tonari-mpi") continue;
    for (const auto& theirs : results.series()) {
      auto name = ours.name;
      name.system = theirs.name.system;
      if (!(name == theirs.name) || &ours == &theirs) continue;
      for (const auto& point : ours.points) {
        if (compare(ours, theirs, point.first).pairs > 0) {
          all.push_back(as_json(results, ours, theirs, point.first));
        }
      }
    }
  }
  return all;
}

}  // namespace tonari::bench::driver
