#pragma once

// Question: how long does it take to let other ranks reach N bytes of the program's own memory, and to end that?
// Method:   memory that was written before:
//             together         a window that both ranks make and free together; the slower rank counts
//             alone            rank 0 does it by itself, while rank 1 waits in the library; in MPI, memory is attached
//                              to a dynamic window, and detached
//             together pinned  with all pages in memory from the start, if the system supports it
//             alone pinned     the same
//           Each call is timed by itself, as one sample. A barrier precedes each window made together. The first is
//           dropped. Before, bytes pushed to both ends of such a window are checked. Sizes that this process may not
//           lock in memory (`ulimit -l`) are left out of the pinned cases.
// Output:   make and free, in us against bytes.

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/one_sided_wire.hpp"
#include "harness/placement.hpp"
#include "harness/worker.hpp"

#include "base/clock.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tonari::bench::registration {

inline constexpr std::size_t samples_max = 300;
inline constexpr std::size_t samples_min = 3;

/// Times in us: of one repetition, or of all.
struct Took {
  double make;
  double free;
};
struct Samples {
  std::vector<double> make;
  std::vector<double> free;
};

inline double us_between(std::uint64_t start, std::uint64_t end) { return static_cast<double>(end - start) / 1000; }

/// Calls `once()` as often as the budget allows, by the time of the second call; drops the first. Every rank calls it,
/// and `once()` returns the same on all.
template <class Once>
Samples repeat(double budget_us, Once once) {
  once();
  const Took tried = once();
  const double all_us = std::max(tried.make + tried.free, 0.1);
  const auto count = std::clamp(static_cast<std::size_t>(budget_us / all_us), samples_min, samples_max);
  Samples samples;
  for (std::size_t i = 0; i < count; ++i) {
    const Took took = once();
    samples.make.push_back(took.make);
    samples.free.push_back(took.free);
  }
  return samples;
}

/// A window that all ranks make and free together.
template <OneSidedWire W, class Make>
Took time_together(W& wire, Make make) {
  wire.barrier();
  const auto start = monotonic_ns();
  std::optional<typename W::Window> window;
  struct Made {  // makes it in place: a window need not be movable
    Make& make;
    operator typename W::Window() const { return make(); }
  };
  window.emplace(Made{make});
  const auto made = monotonic_ns();
  wire.barrier();
  const auto again = monotonic_ns();
  window.reset();
  const auto end = monotonic_ns();
  const auto slowest = largest_of_ranks(wire, {us_between(start, made), us_between(again, end)});
  return {slowest[0], slowest[1]};
}

/// Rank 0 alone; the others learn how long it took.
template <OneSidedWire W, class Make, class Free>
Took time_alone(W& wire, Make make, Free free) {
  Took took{};
  if (wire.rank() == 0) {
    const auto start = monotonic_ns();
    make();
    const auto made = monotonic_ns();
    free();
    took = {us_between(start, made), us_between(made, monotonic_ns())};
  }
  wire.broadcast(bytes_of(took), 0);
  return took;
}

/// Bytes pushed by each rank to both ends of the next one's memory come there.
template <OneSidedWire W>
void check(W& wire, std::span<std::byte> memory) {
  auto window = wire.expose(memory);
  const int next = (wire.rank() + 1) % wire.size();
  const unsigned mine = static_cast<unsigned>(wire.rank()) + 1;
  const unsigned theirs = static_cast<unsigned>((wire.rank() + wire.size() - 1) % wire.size()) + 1;
  std::array<std::byte, 4> few{};
  fill_pattern(few, mine);
  wire.barrier();
  window.push(few, next, 0);
  window.push(few, next, memory.size() - few.size());
  window.flush(next);
  wire.barrier();
  const auto local = window.local();
  if (!has_pattern(local.first(few.size()), theirs) || !has_pattern(local.last(few.size()), theirs)) {
    throw std::runtime_error("register: a window of " + std::to_string(memory.size()) +
                             " bytes has other bytes at its ends than were pushed");
  }
  wire.barrier();
}

/// Whether all ranks may keep so much in memory.
template <OneSidedWire W>
bool all_can_pin(W& wire, std::span<std::byte> memory) {
  const bool can = ::mlock(memory.data(), memory.size()) == 0;
  if (can) ::munlock(memory.data(), memory.size());
  return largest_of_ranks(wire, {can ? 0.0 : 1.0})[0] == 0;
}

template <AloneWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() != 2) throw std::invalid_argument("register needs two ranks, no more: -n 2");
  output.parameter("processors", processors(gather_places(wire)));
  const auto budget_us = options.number("budget-us", 10000);
  auto alone = wire.prepare_alone();
  for (const auto bytes : options.sizes("sizes", "4096,1048576")) {
    const Memory all(bytes);
    const auto memory = all.bytes().first(bytes);
    const auto report = [&](const std::string& label, const Samples& samples) {
      output.samples({label, "make", "us", "bytes"}, static_cast<double>(bytes), samples.make);
      output.samples({label, "free", "us", "bytes"}, static_cast<double>(bytes), samples.free);
    };
    const auto together = [&](auto make) { return repeat(budget_us, [&] { return time_together(wire, make); }); };
    const auto by_itself = [&](auto make) {
      return repeat(budget_us, [&] { return time_alone(wire, make, [&] { alone.withdraw(); }); });
    };
    check(wire, memory);
    report("together", together([&] { return wire.expose(memory); }));
    report("alone", by_itself([&] { alone.expose(memory); }));
    if constexpr (PinningWire<W>) {
      if (!all_can_pin(wire, memory)) {
        output.parameter("not_pinned_from_bytes", static_cast<double>(bytes));
        continue;
      }
      report("together pinned", together([&] { return wire.expose_pinned(memory); }));
      report("alone pinned", by_itself([&] { alone.expose_pinned(memory); }));
    }
  }
}

}  // namespace tonari::bench::registration
