#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <random>
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

struct Interval {
  double low;
  double high;
};

/// Returns an interval for the median of values that are independent of each other: the 2.5th to the 97.5th percentile
/// of the medians of 1,000 samples drawn from them with replacement (Efron's bootstrap). The draws are the same in each
/// run. Returns nothing for fewer than three values.
inline std::optional<Interval> bootstrap_median(std::span<const double> values) {
  if (values.size() < 3) return std::nullopt;
  std::mt19937_64 random;  // NOLINT(cert-msc51-cpp): a result must not change if it is printed again
  std::uniform_int_distribution<std::size_t> any(0, values.size() - 1);
  std::vector<double> medians(1000);
  std::vector<double> drawn(values.size());
  for (double& median : medians) {
    for (double& value : drawn) value = values[any(random)];
    std::ranges::sort(drawn);
    median = quantile(drawn, 0.5);
  }
  std::ranges::sort(medians);
  return Interval{quantile(medians, 0.025), quantile(medians, 0.975)};
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

/// Returns the line with the least squares of the errors: its slope is the one of the long range. Returns nothing with
/// fewer than two different x.
inline std::optional<Line> fit_least_squares(std::span<const Point> points) {
  const auto n = static_cast<double>(points.size());
  double x_sum = 0, y_sum = 0;
  for (const auto& [x, y] : points) {
    x_sum += x;
    y_sum += y;
  }
  double xx = 0, xy = 0;  // about the means, which keeps the digits
  for (const auto& [x, y] : points) {
    xx += (x - x_sum / n) * (x - x_sum / n);
    xy += (x - x_sum / n) * (y - y_sum / n);
  }
  if (!(xx > 0)) return std::nullopt;
  const double slope = xy / xx;
  return Line{(y_sum - slope * x_sum) / n, slope};
}

/// Returns the line with the least squares of *relative* errors, so that short messages count as much as long ones.
/// Returns nothing with fewer than two different x, or if a y is not positive.
inline std::optional<Line> fit_relative(std::span<const Point> points) {
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
