#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace tonari::bench::driver {

/// Returns the quantile `fraction` of sorted samples, interpolated between the two nearest; 0 without samples.
inline double quantile(std::span<const double> sorted, double fraction) {
  if (sorted.empty()) return 0;
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Summary of a series of samples.
struct Summary {
  double min = 0;
  double median = 0;
  double p99 = 0;
  double max = 0;
  double mean = 0;
  double stddev = 0;  ///< Sample standard deviation (n - 1); 0 for one sample.
  std::size_t n = 0;
};

inline Summary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  const auto n = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return {.min = samples.front(),
          .median = quantile(samples, 0.5),
          .p99 = quantile(samples, 0.99),
          .max = samples.back(),
          .mean = mean,
          .stddev = samples.size() > 1 ? std::sqrt(squares / (n - 1)) : 0,
          .n = samples.size()};
}

/// Returns at most `count` of the samples, evenly spaced, in order.
inline std::vector<double> thin_out(std::span<const double> samples, std::size_t count) {
  if (samples.size() <= count) return {samples.begin(), samples.end()};
  std::vector<double> kept;
  for (std::size_t i = 0; i < count; ++i) kept.push_back(samples[i * samples.size() / count]);
  return kept;
}

struct Point {
  double x;
  double y;
};

/// y = at_zero + slope * x.
struct Line {
  double at_zero;
  double slope;
};

/// Returns the line with the least squares of *relative* errors, so that short messages count as much as long ones.
/// Returns nothing with fewer than two different x, or if a y is not positive.
inline std::optional<Line> fit_line(std::span<const Point> points) {
  double uu = 0, uv = 0, vv = 0, u_sum = 0, v_sum = 0;  // minimises the sum of (1 - at_zero * u - slope * v)^2
  for (const auto& [x, y] : points) {
    if (!(y > 0)) return std::nullopt;
    const double u = 1 / y;
    const double v = x / y;
    uu += u * u;
    uv += u * v;
    vv += v * v;
    u_sum += u;
    v_sum += v;
  }
  const double determinant = uu * vv - uv * uv;
  if (!(determinant > 1e-12 * uu * vv)) return std::nullopt;
  return Line{(vv * u_sum - uv * v_sum) / determinant, (uu * v_sum - uv * u_sum) / determinant};
}

}  // namespace tonari::bench::driver
