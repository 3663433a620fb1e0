#pragma once

// Question: how long does it take to write the same N bytes into the memory of all other ranks?
// Method:   rank 0 writes to the same offset of all other parts of a window (memory that the system allocated) and
//           flushes them all; the others wait in a barrier. Two ways: "multicast", one call, and "loop of pushes", one
//           call per rank. MPI has no such call; its "multicast" is the loop. Batches of about 50 us, the first
//           dropped. Before, every rank checks the received bytes.
// Output:   latency in us against bytes; cases "multicast ranks 4", "loop of pushes ranks 4".

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/one_sided_wire.hpp"
#include "harness/owner.hpp"
#include "harness/placement.hpp"
#include "harness/worker.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::multicast {

inline constexpr double batch_us = 50;

/// Measures one size and way. Every rank calls it. `write()` writes `bytes`, on rank 0.
template <MulticastWire W, class Write>
void measure(W& wire, typename W::Window& window, std::span<std::byte> bytes, const std::string& label, unsigned seed,
             double budget_us, Output& output, Write write) {
  const auto write_all = [&](std::uint32_t operations) {
    for (std::uint32_t i = 0; i < operations; ++i) {
      write();
      window.flush();
    }
  };
  fill_pattern(bytes, seed);
  wire.barrier();
  if (wire.rank() == 0) write_all(1);
  wire.barrier();
  if (wire.rank() != 0 && !has_pattern(window.local().first(bytes.size()), seed)) {
    throw std::runtime_error("multicast: " + label + ": rank " + std::to_string(wire.rank()) +
                             " has other bytes than were written");
  }
  wire.barrier();
  if (wire.rank() == 0) {
    const Effort effort{.batch_us = batch_us, .budget_us = budget_us, .computing_us = 0, .computations = 0};
    const auto samples = Owner<W>::time_waiting_us(effort, write_all);
    output.samples({label, "latency", "us", "bytes"}, static_cast<double>(bytes.size()), samples);
  }
  wire.barrier();
}

template <MulticastWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() < 2) throw std::invalid_argument("multicast needs two ranks");
  output.parameter("processors", processors(gather_places(wire)));
  const auto sizes = options.sizes("sizes", "8,1024");
  const auto budget_us = options.number("budget-us", 10000);
  const auto ranks = " ranks " + std::to_string(wire.size());
  const Memory memory(std::ranges::max(sizes));
  auto window = wire.allocate(std::ranges::max(sizes));
  unsigned seed = 0;
  for (const auto bytes : sizes) {
    const auto from = memory.bytes().first(bytes);
    measure(wire, window, from, "multicast" + ranks, ++seed, budget_us, output, [&] { window.multicast(from, 0); });
    measure(wire, window, from, "loop of pushes" + ranks, ++seed, budget_us, output, [&] {
      for (int rank = 1; rank < wire.size(); ++rank) window.push(from, rank, 0);
    });
  }
}

}  // namespace tonari::bench::multicast
