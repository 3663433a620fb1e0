#pragma once

#include "driver/metric.hpp"
#include "driver/results.hpp"

#include <span>
#include <string>
#include <string_view>

namespace tonari::bench::driver {

/// Prints one table per case of the metric: one row per x, one column per system, and the ratios of tonari and of its
/// MPI to the best rival. Lower bounds ("ring"), other designs ("lhs"), and tonari with other settings are not rivals.
std::string tell_metric(const Results& results, const Metric& shown);
/// Does so for each of the metrics, in order.
std::string tell_metrics(const Results& results, std::span<const Metric> metrics);

/// Returns the ratio of two series at x, with the smallest difference that the run can show: "0.83x +-4.0%"; with "~"
/// before it if no difference was seen; without the difference after a single round; "-" if one lacks x.
std::string format_ratio(const Results& results, const Series& ours, const Series& theirs, double x);
/// Explains what format_ratio() returns after several rounds. One line.
std::string legend_of_ratios();

/// Prints the largest residual of these `things`, and whether all are below the bound of `whose` test.
std::string tell_residuals(const Results& results, std::string_view what, std::string_view things,
                           std::string_view whose = "LAPACK");

}  // namespace tonari::bench::driver
