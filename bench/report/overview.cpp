#include "report/overview.hpp"

#include "driver/comparing.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace tonari::bench::report {

namespace {

bool is_of_same_place(const Compared& one, const Compared& other) {
  return one.label == other.label && one.metric == other.metric && one.x == other.x;
}

Standing standing_of(const Report& report, const std::string& metric, const std::vector<Compared>& best) {
  Standing standing;
  standing.benchmark = name_of_run(report);
  standing.metric = metric;
  double sum = 0, low = 0, high = 0;
  bool have_intervals = true;
  for (const auto& one : best) {
    if (one.metric != metric) continue;
    standing.better_values = one.better;
    if (one.differs)
      ++((one.ratio > 1) == (standing.better_values == driver::Better::high) ? standing.better : standing.worse);
    standing.ratio_min = standing.compared == 0 ? one.ratio : std::min(standing.ratio_min, one.ratio);
    standing.ratio_max = standing.compared == 0 ? one.ratio : std::max(standing.ratio_max, one.ratio);
    ++standing.compared;
    sum += std::log(one.ratio);
    have_intervals = have_intervals && one.low && one.high && *one.low > 0;
    if (have_intervals) {
      low += std::log(*one.low);
      high += std::log(*one.high);
    }
  }
  const auto count = static_cast<double>(standing.compared);
  standing.ratio = std::exp(sum / count);
  if (have_intervals) {
    standing.low = std::exp(low / count);
    standing.high = std::exp(high / count);
  }
  return standing;
}

}  // namespace

std::string name_of_run(const Report& report) {
  const auto stem = std::filesystem::path(report.file).stem().string();
  return stem.starts_with(report.benchmark + "-") ? stem : report.benchmark;
}

std::vector<Compared> best_rivals(const Report& report) {
  std::vector<Compared> best;
  for (const auto& one : report.comparisons) {
    if (one.system != "tonari" || !driver::is_rival(one.with) || one.better == driver::Better::neither) continue;
    const auto found = std::ranges::find_if(best, [&](const Compared& other) { return is_of_same_place(one, other); });
    if (found == best.end()) {
      best.push_back(one);
    } else if (one.better == driver::Better::high ? one.ratio < found->ratio : one.ratio > found->ratio) {
      *found = one;
    }
  }
  return best;
}

std::vector<Standing> standings(const std::vector<Report>& reports) {
  std::vector<Standing> all;
  for (const auto& report : reports) {
    const auto best = best_rivals(report);
    std::vector<std::string> metrics;
    for (const auto& one : best) {
      if (std::ranges::find(metrics, one.metric) == metrics.end()) metrics.push_back(one.metric);
    }
    for (const auto& metric : metrics) all.push_back(standing_of(report, metric, best));
  }
  return all;
}

}  // namespace tonari::bench::report
