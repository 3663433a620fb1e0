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

// Reading the clock costs some 20 ns, so short operations are timed in batches, and a batch is one sample.

inline constexpr std::uint32_t batch_operations_max = 4096;
inline constexpr std::uint64_t batches_min = 3;
inline constexpr std::uint64_t batches_max = 1000;

/// So many operations make a batch, and so many batches are measured.
struct Batches {
  std::uint32_t operations;
  std::uint64_t batches;
};

/// Batches that last `batch_us` each and `budget_us` in all, as far as their least number allows.
/// `operation_us(operations)` answers what one operation takes in the fastest of some batches of so many: of several,
/// so that an interruption does not shorten the measurement.
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

/// The largest of all ranks' values, one by one. Every rank calls it with as many, and every rank gets them.
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

/// Times operations that all ranks take part in; every rank calls it. `perform(operations)` performs so many in a row.
/// Before each batch is a barrier, which is not timed. A sample is what an operation of a batch took on the rank where
/// it took longest, in us; the first batch is dropped. Of operations that take longer than the budget there are two
/// samples. Every rank gets the samples.
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

/// Receives without using this rank's core until the message is there: others may be measured on it.
template <StartedWire W>
void receive_asleep(W& wire, std::span<std::byte> bytes, int rank, int tag) {
  auto request = wire.start_receive(bytes, rank, tag);
  while (!wire.test(request)) ::usleep(1000);
}

}  // namespace tonari::bench
