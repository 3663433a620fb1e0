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
  static constexpr std::array<std::string_view, 7> others{"ring",   "lhs",    "no-lhs",    "byte-loop",
                                                          "memcmp", "memcpy", "process-vm"};
  return std::ranges::find(others, system) != others.end() || system.starts_with("tonari");
}

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

nlohmann::ordered_json comparisons_as_json(const Results& results) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& ours : results.series()) {
    if (ours.name.system != "tonari" && ours.name.system != "tonari-mpi") continue;
    for (const auto& theirs : results.series()) {
      auto name = ours.name;
      name.system = theirs.name.system;
      if (!(name == theirs.name) || &ours == &theirs) continue;
      for (const auto& point : ours.points) {
        if (theirs.points.contains(point.first)) all.push_back(as_json(results, ours, theirs, point.first));
      }
    }
  }
  return all;
}

}  // namespace tonari::bench::driver
