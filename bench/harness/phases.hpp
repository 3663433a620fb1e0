#pragma once

#include "harness/gather.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tonari::bench {

/// The time a rank spent in each phase, in s. Sent in this layout.
struct Times {
  double all = 0;
  double send = 0;
  double compute = 0;
  double wait = 0;
};

/// Adds the time since the last call, or since construction, to one of the Times.
class Watch {
 public:
  void lap(double& seconds) noexcept {
    const auto now = monotonic_ns();
    seconds += static_cast<double>(now - last_) * 1e-9;
    last_ = now;
  }

 private:
  std::uint64_t last_ = monotonic_ns();
};

/// The times of repeated runs: one sample per rank and run; for the rate, one sample per run.
class PhaseSamples {
 public:
  /// Adds every rank's times of one run of this many operations. Returns the time of the slowest rank.
  double add(const std::vector<Times>& ranks, double operations) {
    double slowest = 0;
    for (const auto& times : ranks) {
      slowest = std::max(slowest, times.all);
      send_.push_back(times.send);
      compute_.push_back(times.compute);
      wait_.push_back(times.wait);
    }
    rates_.push_back(operations / slowest * 1e-9);
    return slowest;
  }

  /// Writes the samples. Runs without operations have no rate.
  void report(Output& output, const std::string& label, const std::string& x, double at) const {
    if (std::ranges::any_of(rates_, [](double rate) { return rate > 0; })) {
      output.samples({label, "rate", "GFLOP/s", x}, at, rates_);
    }
    output.samples({label, "send", "s", x}, at, send_);
    output.samples({label, "compute", "s", x}, at, compute_);
    output.samples({label, "wait", "s", x}, at, wait_);
  }

 private:
  std::vector<double> rates_, send_, compute_, wait_;
};

}  // namespace tonari::bench
