#pragma once

#include "driver/metric.hpp"
#include "report/model.hpp"

#include <string>
#include <vector>

namespace tonari::bench::report {

/// How a median of tonari changed between two runs.
struct Change {
  std::string benchmark;
  std::string label;
  std::string metric;
  std::string x;
  driver::Better better_values = driver::Better::neither;
  double ratio = 1;           ///< New divided by old: geometric means over the rounds.
  std::optional<double> low;  ///< Bounds of the interval; none if a run has fewer than two rounds.
  std::optional<double> high;

  [[nodiscard]] bool differs() const noexcept { return low && high && (*low > 1 || *high < 1); }
};

/// Compares tonari's medians of the rounds in two runs. The runs were not measured in turn, so their rounds are no
/// pairs: the interval is Welch's, of the difference of the mean logarithms. It contains the noise between rounds, but
/// not a change of the machine's speed between the two runs.
std::vector<Change> changes(const std::vector<Report>& before, const std::vector<Report>& after);

}  // namespace tonari::bench::report
