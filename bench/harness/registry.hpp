#pragma once

#include "harness/worker.hpp"

#include <string>

namespace tonari::bench {

/// Adds a measurement to the worker. A benchmark's file tonari.cpp has one such variable per system that the worker can
/// measure.
class Measurement {
 public:
  using Function = void (*)(const Options&);

  /// `question` is the benchmark's name, `system` the value of the worker's option --system ("tonari" by default).
  Measurement(const char* question, const char* system, Function measure);
};

/// Returns the measurement of this question and system, or null.
Measurement::Function find_measurement(const std::string& question, const std::string& system);

}  // namespace tonari::bench
