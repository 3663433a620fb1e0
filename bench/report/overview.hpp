#pragma once

#include "driver/metric.hpp"
#include "report/model.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace tonari::bench::report {

/// Returns the name of a run: "overlap-blocks" if its file is called so, otherwise the benchmark's.
std::string name_of_run(const Report& report);

/// tonari beside the best rival of each case and x, for one metric of one benchmark. Ratios are tonari's value divided
/// by the rival's.
struct Standing {
  std::string benchmark;  ///< The name of the run.
  std::string metric;
  driver::Better better_values = driver::Better::low;
  std::size_t compared = 0;  ///< Cases and x with at least one rival.
  std::size_t better = 0;    ///< tonari is better in so many, worse in `worse`; for the others no difference was seen.
  std::size_t worse = 0;
  double ratio = 1;  ///< Geometric mean.
  /// Geometric means of the bounds. The comparisons share rounds, so their errors may go together: this interval holds
  /// even then.
  std::optional<double> low;
  std::optional<double> high;
  double ratio_min = 1;
  double ratio_max = 1;
};

/// Returns the comparisons of tonari with the best rival, one per case, metric and x. Metrics that are neither good nor
/// bad have none. Lower bounds, runs with all memory local, and other forms of
/// tonari are not rivals.
std::vector<Compared> best_rivals(const Report& report);

/// Returns one entry per benchmark and metric that has a rival.
std::vector<Standing> standings(const std::vector<Report>& reports);

}  // namespace tonari::bench::report
