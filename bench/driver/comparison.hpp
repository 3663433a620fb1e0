#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

// Whether two systems differ, on a machine whose speed changes from one minute to the next. The two are measured in
// turn, A B A B: one pair per round. A change of speed between the rounds changes both values of a pair, and cancels
// in their ratio. Samples within a round are not independent of each other (one process, one placement of its memory),
// so each round counts as one value, however many samples it has.

namespace tonari::bench::driver {

/// The confidence of all intervals of ratios. A system differs from itself in about 5 of 1,000 comparisons.
inline constexpr double confidence = 0.995;

/// Returns the quantile of Student's t distribution for a two-sided interval with `confidence`, for up to 30 degrees of
/// freedom from the table, above by the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5).
inline double student_quantile(std::size_t degrees_of_freedom) {
  static constexpr std::array table{127.3, 14.09, 7.453, 5.598, 4.773, 4.317, 4.029, 3.833, 3.690, 3.581,
                                    3.497, 3.428, 3.372, 3.326, 3.286, 3.252, 3.222, 3.197, 3.174, 3.153,
                                    3.135, 3.119, 3.104, 3.091, 3.078, 3.067, 3.057, 3.047, 3.038, 3.030};
  if (degrees_of_freedom == 0) return INFINITY;
  if (degrees_of_freedom <= table.size()) return table[degrees_of_freedom - 1];
  constexpr double z = 2.80703;
  const auto n = static_cast<double>(degrees_of_freedom);
  return z + (std::pow(z, 3) + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * n * n);
}

/// How two systems that were measured in turn compare. All members are factors: 1 means equal.
struct Comparison {
  double ratio = 1;  ///< Geometric mean of the pairs' ratios.
  double low = 0;    ///< Bounds of the interval; 0 and infinity if fewer than two pairs were measured.
  double high = INFINITY;
  std::size_t pairs = 0;

  /// Returns true if the interval excludes 1.
  [[nodiscard]] bool differs() const noexcept { return low > 1 || high < 1; }
  /// Returns the smallest difference that these pairs could show, as a fraction: 0.04 is 4 %. Infinite with one pair.
  [[nodiscard]] double smallest_difference() const noexcept { return ratio > 0 ? high / ratio - 1 : INFINITY; }
};

/// Compares the values of two systems, one per round: value i of both is a pair. Values that are not positive, and
/// values without a partner, are left out. The interval is that of the mean logarithm (Student's t), which is too wide
/// rather than too narrow if the values have outliers.
inline Comparison compare(std::span<const double> ours, std::span<const double> theirs) {
  double sum = 0, squares = 0;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (!(ours[i] > 0) || !(theirs[i] > 0)) continue;
    const double difference = std::log(ours[i] / theirs[i]);
    const double before = pairs == 0 ? 0 : sum / static_cast<double>(pairs);
    sum += difference;
    ++pairs;
    squares += (difference - before) * (difference - sum / static_cast<double>(pairs));  // Welford's recurrence
  }
  if (pairs == 0) return {};
  const auto n = static_cast<double>(pairs);
  const double mean = sum / n;
  if (pairs == 1) return {std::exp(mean), 0, INFINITY, 1};
  const double half = student_quantile(pairs - 1) * std::sqrt(std::max(squares, 0.0) / (n - 1) / n);
  return {std::exp(mean), std::exp(mean - half), std::exp(mean + half), pairs};
}

}  // namespace tonari::bench::driver
