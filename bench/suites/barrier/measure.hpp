#pragma once

// Question: how long does a barrier take, against the number of ranks?
// Method:   many barriers in a row, in batches of about half a millisecond (batches.hpp). A sample is the mean time of
//           a batch on its slowest rank. At first every rank in turn comes late, and the others must not leave before
//           it comes. That check needs one clock for all ranks, as on one host.
// Output:   latency in us against ranks; case "barrier".

#include "harness/batches.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include "base/clock.hpp"

#include <stdexcept>

namespace tonari::bench::barrier {

inline constexpr double batch_us = 500;
inline constexpr std::uint64_t late_ns = 100'000;

template <StartedWire W>
void check(W& wire) {
  for (int late = 0; late < wire.size(); ++late) {
    const auto start = monotonic_ns();
    while (wire.rank() == late && monotonic_ns() - start < late_ns) {
    }
    const auto came = static_cast<double>(monotonic_ns());
    wire.barrier();
    const auto left = static_cast<double>(monotonic_ns());
    if (left < largest_of_ranks(wire, {came})[0]) {
      throw std::runtime_error("barrier: a rank left before another had come");
    }
  }
}

template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  output.parameter("processors", processors(gather_places(wire)));
  check(wire);
  const auto samples = time_together_us(wire, batch_us, options.number("budget-us", 20000), [&](auto operations) {
    for (std::uint32_t i = 0; i < operations; ++i) wire.barrier();
  });
  output.samples({"barrier", "latency", "us", "ranks"}, wire.size(), samples);
}

}  // namespace tonari::bench::barrier
