#include "report/changes.hpp"

#include "driver/comparison.hpp"
#include "report/text.hpp"

#include <algorithm>
#include <cmath>

namespace tonari::bench::report {

namespace {

struct Logarithms {
  double mean = 0;
  double error_squared = 0;  ///< The squared standard error of the mean.
  double n = 0;
};

Logarithms logarithms(const std::vector<double>& rounds) {
  Logarithms result;
  for (const double value : rounds) {
    if (!(value > 0)) continue;
    result.mean += std::log(value);
    ++result.n;
  }
  if (result.n == 0) return result;
  result.mean /= result.n;
  double squares = 0;
  for (const double value : rounds) {
    if (value > 0) squares += std::pow(std::log(value) - result.mean, 2);
  }
  if (result.n > 1) result.error_squared = squares / (result.n - 1) / result.n;
  return result;
}

/// Welch's test: the degrees of freedom are Satterthwaite's, rounded down.
void add_interval(Change& change, const Logarithms& before, const Logarithms& after) {
  if (before.n < 2 || after.n < 2) return;
  const double variance = before.error_squared + after.error_squared;
  double half = 0;
  if (variance > 0) {
    const double freedom =
        variance * variance /
        (std::pow(before.error_squared, 2) / (before.n - 1) + std::pow(after.error_squared, 2) / (after.n - 1));
    half = driver::student_quantile(static_cast<std::size_t>(std::max(freedom, 1.0))) * std::sqrt(variance);
  }
  change.low = change.ratio * std::exp(-half);
  change.high = change.ratio * std::exp(half);
}

const Point* point_of(const std::vector<Report>& reports, const std::string& benchmark, const Series& wanted,
                      double x) {
  for (const auto& report : reports) {
    if (report.benchmark != benchmark) continue;
    for (const auto& series : report.series) {
      if (series.system != wanted.system || series.label != wanted.label || series.metric != wanted.metric ||
          series.unit != wanted.unit || series.x != wanted.x) {
        continue;
      }
      const auto found = std::ranges::find(series.points, x, &Point::x);
      if (found != series.points.end()) return &*found;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<Change> changes(const std::vector<Report>& before, const std::vector<Report>& after) {
  std::vector<Change> all;
  for (const auto& report : after) {
    for (const auto& series : report.series) {
      if (series.system != "tonari") continue;
      for (const auto& point : series.points) {
        const auto* const old = point_of(before, report.benchmark, series, point.x);
        if (old == nullptr) continue;
        const auto then = logarithms(old->rounds);
        const auto now = logarithms(point.rounds);
        if (then.n == 0 || now.n == 0) continue;
        Change change{.benchmark = report.benchmark,
                      .label = series.label,
                      .metric = series.metric,
                      .x = format_named_x(series.x, point.x),
                      .better_values = series.better,
                      .ratio = std::exp(now.mean - then.mean),
                      .low = {},
                      .high = {}};
        add_interval(change, then, now);
        all.push_back(std::move(change));
      }
    }
  }
  return all;
}

}  // namespace tonari::bench::report
