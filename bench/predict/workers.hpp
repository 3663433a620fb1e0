#pragma once

#include "driver/results.hpp"
#include "driver/systems.hpp"

#include <string>
#include <vector>

namespace tonari::bench::predict {

/// A measurement of tonari. `note` tells its series apart: their system is "tonari" and the note.
struct Asked {
  driver::Ask ask;
  std::string note;
};

/// Runs the workers of tonari for each of `asks`, in turn, `rounds` times. Throws SetupError if a worker fails, and
/// driver::Interrupted after a signal to stop.
driver::Results run_workers(const std::vector<Asked>& asks, int rounds);

/// Returns the series of a note, case and metric. Throws SetupError if the workers have not measured it.
const driver::Series& series_of(const driver::Results& results, const std::string& note, std::string_view label,
                                std::string_view metric);

/// Returns the median of the medians of the rounds at x; 0 if none.
double median_at(const driver::Series& series, double x);

}  // namespace tonari::bench::predict
