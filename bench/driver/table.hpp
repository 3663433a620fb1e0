#pragma once

#include "driver/results.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tonari::bench::driver {

enum class Better : std::uint8_t { low, high, neither };

/// How a metric is shown: the median, or the mean with its spread; and what beats what.
struct Shown {
  std::string_view metric;
  Better better = Better::neither;
  bool mean_and_spread = false;
};

/// A table for each case that has the metric: a row for each x, a column for each system, and tonari's ratio to the
/// best rival. No rivals are floors ("ring"), other designs ("lhs"), and tonari with other settings.
std::string tell_metric(const Results& results, const Shown& shown);

/// The largest residual, of so many `things`, and whether all are below the bound that `whose` test has: a line, set
/// off.
std::string tell_residuals(const Results& results, std::string_view what, std::string_view things,
                           std::string_view whose = "LAPACK");

}  // namespace tonari::bench::driver
