#pragma once

#include "harness/wire.hpp"

#include "base/clock.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tonari::bench {

// Reading the clock costs about 20 ns, so short operations are timed in batches. One batch is one sample.

inline constexpr std::uint32_t batch_operations_max = 4096;
inline constexpr std::uint64_t batches_min = 3;
inline constexpr std::uint64_t batches_max = 1000;

/// The number of operations per batch, and the number of batches to measure.
struct Batches {
  std::uint32_t operations;
  std::uint64_t batches;
};

/// Returns batches that take about `batch_us` each and `budget_us` together, but at least the minimum number of them.
/// `operation_us(operations)` returns the time of one operation in the fastest of several batches of `operations`.
/// Several, so that an interrupted batch does not shorten the measurement.
template <class Try>
Batches fit_batches(double batch_us, double budget_us, Try operation_us) {
  double each_us = 0;
  std::uint32_t operations = 1;
  for (bool enough = false; !enough; operations *= 4) {
    each_us = operation_us(operations);
    enough = operations * each_us >= batch_us || operations >= batch_operations_max;
  }
  operations = static_cast<std::uint32_t>(std::clamp(batch_us / each_us, 1.0, 1.0 * batch_operations_max));
  return {operations,
          std::clamp(static_cast<std::uint64_t>(budget_us / (operations * each_us)), batches_min, batches_max)};
}

/// Returns the element-wise maximum of all ranks' values, on every rank. Every rank calls it with the same number.
template <StartedWire W>
std::vector<double> largest_of_ranks(W& wire, std::vector<double> values) {
  constexpr int tag_values = 902;
  const auto bytes = std::as_writable_bytes(std::span(values));
  if (wire.rank() == 0) {
    std::vector<double> theirs(values.size());
    for (int rank = 1; rank < wire.size(); ++rank) {
      wire.receive(std::as_writable_bytes(std::span(theirs)), rank, tag_values);
      std::ranges::transform(values, theirs, values.begin(), [](double a, double b) { return std::max(a, b); });
    }
  } else {
    wire.send(bytes, 0, tag_values);
  }
  wire.broadcast(bytes, 0);
  return values;
}

/// Times operations that all ranks take part in. Every rank calls it and gets the samples. `perform(operations)`
/// performs that many in a row. An untimed barrier precedes each batch. A sample is the time per operation on the
/// slowest rank of a batch, in us; the first batch is dropped. Operations that take longer than the budget have two
/// samples.
template <StartedWire W, class Perform>
std::vector<double> time_together_us(W& wire, double batch_us, double budget_us, Perform perform) {
  const auto play = [&](std::uint32_t operations, std::uint64_t batches) {
    std::vector<double> samples;
    for (std::uint64_t batch = 0; batch <= batches; ++batch) {
      wire.barrier();
      const auto start = monotonic_ns();
      perform(operations);
      const auto end = monotonic_ns();
      if (batch != 0) samples.push_back(static_cast<double>(end - start) / 1000 / operations);
    }
    return largest_of_ranks(wire, std::move(samples));
  };
  std::vector<double> tried;
  const auto fitting = fit_batches(batch_us, budget_us, [&](std::uint32_t operations) {
    tried = play(operations, 2);
    return std::ranges::min(tried);
  });
  if (std::ranges::min(tried) >= budget_us) return tried;
  return play(fitting.operations, fitting.batches);
}

/// Receives a message, asleep until it arrives, so that other ranks can be measured on this core.
template <StartedWire W>
void receive_asleep(W& wire, std::span<std::byte> bytes, int rank, int tag) {
  auto request = wire.start_receive(bytes, rank, tag);
  while (!wire.test(request)) ::usleep(1000);
}

}  // namespace tonari::bench
