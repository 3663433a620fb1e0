#pragma once

#include "driver/results.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

// Which systems are compared with which, and what a run can say about their difference.

namespace tonari::bench::driver {

/// Returns true for systems that are not rivals: lower bounds, other designs, tonari with other settings.
[[nodiscard]] bool is_reference(std::string_view system);

/// Returns true for systems that have the same task as tonari: no references, and no runs with all memory local.
[[nodiscard]] bool is_rival(std::string_view system);

/// Returns the smallest difference, as a fraction, that the run can show between `ours` and another system: the half
/// width of the comparison's interval, or of the interval of `ours` compared with itself if that is wider.
[[nodiscard]] double smallest_difference(const Results& results, const Series& ours, const Comparison& comparison,
                                         double x);

/// Returns true if the comparison's difference is above that of the noise.
[[nodiscard]] bool is_different(const Comparison& comparison, double noise);

/// One line about the noise: how much a system that was measured twice per round differs from itself. Empty if no
/// system was.
[[nodiscard]] std::string tell_noise(const Results& results);

/// Returns a line for each lower bound (ring, memcpy, process-vm) that is clearly slower than tonari: such a benchmark
/// measured something else, and its bound must not be used.
[[nodiscard]] std::string tell_broken_bounds(const Results& results);

/// Returns the member "comparisons" of the JSON: tonari, and its MPI, with each system of the same case and x.
[[nodiscard]] nlohmann::ordered_json comparisons_as_json(const Results& results);

}  // namespace tonari::bench::driver
