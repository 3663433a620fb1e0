#pragma once

#include "harness/worker.hpp"

#include <string>

namespace tonari::bench {

/// Adds a measurement to those that the worker can make. A benchmark's file tonari.cpp has such variables, one for each
/// system that the worker is asked to measure.
class Measurement {
 public:
  using Function = void (*)(const Options&);

  /// `question`: the benchmark's name. `system`: as the worker's option --system names it; by default it is "tonari".
  Measurement(const char* question, const char* system, Function measure);
};

/// Returns what was added for this question and system, or null.
Measurement::Function find_measurement(const std::string& question, const std::string& system);

}  // namespace tonari::bench
