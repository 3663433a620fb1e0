#pragma once

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/wire.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tonari::bench {

// Rank 0 accesses the memory of another rank, its owner, and measures. The owner waits for an order in a receive, or it
// computes for a fixed time without calling the library, and then waits again.

/// An order to the owner, sent in this layout.
struct Order {
  enum class What : std::uint64_t { end, compute, empty_caches, fill, look };
  What what;
  std::uint64_t first = 0;  // offset in its memory; for a computation: its length in ns
  std::uint64_t bytes = 0;
  std::uint64_t seed = 0;
};

/// Computes for `ns` without accessing memory and without system calls.
inline void compute_for(std::uint64_t ns) noexcept {
  const auto start = monotonic_ns();
  std::uint64_t number = start;
  while (monotonic_ns() - start < ns) {
    for (int i = 0; i < 100; ++i) {
      number = number * 6364136223846793005 + 1442695040888963407;
      asm volatile("" : "+r"(number));
    }
  }
}

/// Computes a number of steps, each about a nanosecond, however long other threads of this core interrupt it.
inline void compute_steps(std::uint64_t steps) noexcept {
  std::uint64_t number = steps;
  for (std::uint64_t i = 0; i < steps; ++i) {
    number = number * 6364136223846793005 + 1442695040888963407;
    asm volatile("" : "+r"(number));
  }
}

/// The owner's side: executes orders until the order `end`. `window.local()` is its memory.
template <Wire W, class Window>
void serve(W& wire, Window& window, const OtherMemory& other, int tag) {
  while (true) {
    Order order{};
    wire.receive(bytes_of(order), 0, tag);
    bool right = true;
    switch (order.what) {
      case Order::What::end: return;
      case Order::What::compute: break;
      case Order::What::empty_caches: other.read(); break;
      case Order::What::fill:
        fill_pattern(window.local().subspan(order.first, order.bytes), static_cast<unsigned>(order.seed));
        break;
      case Order::What::look:
        right = has_pattern(window.local().subspan(order.first, order.bytes), static_cast<unsigned>(order.seed));
        break;
    }
    wire.send(bytes_of(std::as_const(right)), 0, tag);
    if (order.what == Order::What::compute) compute_for(order.first);
  }
}

/// How long one case is measured.
struct Effort {
  double batch_us;
  double budget_us;     // while the owner waits
  double computing_us;  // the length of one computation of the owner
  int computations;     // the number of computations
};

/// Rank 0's side: sends orders to the owner.
template <Wire W>
class Owner {
 public:
  Owner(W& wire, int rank, int tag) : wire_(wire), rank_(rank), tag_(tag) {}

  /// Executes an order. Returns false if the owner found wrong bytes.
  bool order(const Order& order) {
    wire_.send(bytes_of(order), rank_, tag_);
    bool right = false;
    wire_.receive(bytes_of(right), rank_, tag_);
    return right;
  }
  void end() { wire_.send(bytes_of(Order{Order::What::end}), rank_, tag_); }

  /// Returns the time per operation in us, one sample per batch, while the owner waits. `perform(operations)` performs
  /// that many in a row. The first batch is dropped.
  template <class Perform>
  static std::vector<double> time_waiting_us(const Effort& effort, Perform perform) {
    const auto fitting = fit_batches(effort.batch_us, effort.budget_us, [&](std::uint32_t operations) {
      double least_us = batch_us(perform, operations);
      for (int i = 0; i < 2; ++i) least_us = std::min(least_us, batch_us(perform, operations));
      return least_us;
    });
    batch_us(perform, fitting.operations);
    std::vector<double> samples;
    for (std::uint64_t i = 0; i < fitting.batches; ++i) samples.push_back(batch_us(perform, fitting.operations));
    return samples;
  }

  /// The same while the owner computes. Batches begin only during the first three quarters of a computation. An
  /// operation that needs the owner's help takes the rest of the computation, and is a sample like any other.
  template <class Perform>
  std::vector<double> time_computing_us(const Effort& effort, Perform perform) {
    std::vector<double> samples;
    std::uint32_t operations = 1;
    for (int i = 0; i < effort.computations; ++i) {
      order({.what = Order::What::compute, .first = static_cast<std::uint64_t>(effort.computing_us * 1000)});
      const auto start = monotonic_ns();
      const auto in_time = [&] {
        return static_cast<double>(monotonic_ns() - start) / 1000 < effort.computing_us * 3 / 4;
      };
      for (std::uint64_t batch = 0; batch < batches_max && in_time(); ++batch) {
        const double each_us = batch_us(perform, operations);
        const bool enough = operations * each_us >= effort.batch_us / 2 || operations >= batch_operations_max;
        if (enough) samples.push_back(each_us);
        if (!enough) operations *= 2;
      }
    }
    return samples;
  }

 private:
  template <class Perform>
  static double batch_us(Perform& perform, std::uint32_t operations) {
    const auto start = monotonic_ns();
    perform(operations);
    return static_cast<double>(monotonic_ns() - start) / 1000 / operations;
  }

  W& wire_;
  int rank_;
  int tag_;
};

}  // namespace tonari::bench
