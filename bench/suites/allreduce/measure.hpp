#pragma once

// Question: how long does an all-reduce of N bytes take?
// Method:   sums of doubles, in place, many in a row, in batches of about half a millisecond (batches.hpp). A sample is
//           the mean time of a batch on its slowest rank. The first result of each size is checked element by element.
//           The timed calls add zeros, so that the numbers do not grow.
// Output:   latency in us against bytes; case "ranks 4".

#include "harness/batches.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::allreduce {

inline constexpr double batch_us = 500;

/// Rank r's part of element i is (r + 1) * element(i); sums of these are exact.
inline double element(std::size_t i) noexcept { return static_cast<double>(i % 1009 + 1); }

template <CollectiveWire W>
void check(W& wire, std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (wire.rank() + 1) * element(i);
  wire.all_reduce(values);
  const double parts = 0.5 * wire.size() * (wire.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != parts * element(i)) {
      throw std::runtime_error("allreduce: element " + std::to_string(i) + " of " + std::to_string(values.size()) +
                               " has a wrong sum");
    }
  }
}

template <CollectiveWire W>
void run(W& wire, const Options& options, Output& output) {
  output.parameter("processors", processors(gather_places(wire)));
  for (const auto bytes : options.sizes("sizes", "8,1024")) {
    std::vector<double> values(bytes / sizeof(double));
    check(wire, values);
    std::ranges::fill(values, 0.0);
    const auto samples = time_together_us(wire, batch_us, options.number("budget-us", 20000), [&](auto operations) {
      for (std::uint32_t i = 0; i < operations; ++i) wire.all_reduce(values);
    });
    output.samples({"ranks " + std::to_string(wire.size()), "latency", "us", "bytes"}, static_cast<double>(bytes),
                   samples);
  }
}

}  // namespace tonari::bench::allreduce
