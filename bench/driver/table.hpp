#pragma once

#include "driver/results.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tonari::bench::driver {

enum class Better : std::uint8_t { low, high, neither };

/// How a metric is printed: as median, or as mean with spread; and whether low or high is better.
struct Shown {
  std::string_view metric;
  Better better = Better::neither;
  bool mean_and_spread = false;
};

/// Prints one table per case of the metric: one row per x, one column per system, and the ratios of tonari and of its
/// MPI to the best rival. Lower bounds ("ring"), other designs ("lhs"), and tonari with other settings are not rivals.
std::string tell_metric(const Results& results, const Shown& shown);

/// Returns the ratio of two series at x, with the smallest difference that the run can show: "0.83x +-4.0%"; with "~"
/// before it if no difference was seen; without the difference after a single round; "-" if one lacks x.
std::string format_ratio(const Results& results, const Series& ours, const Series& theirs, double x);
/// Explains what format_ratio() returns after several rounds. One line.
std::string legend_of_ratios();

/// Prints the largest residual of these `things`, and whether all are below the bound of `whose` test.
std::string tell_residuals(const Results& results, std::string_view what, std::string_view things,
                           std::string_view whose = "LAPACK");

}  // namespace tonari::bench::driver
