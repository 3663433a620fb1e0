#pragma once

// Question: how long does an all-to-all take, against the number of ranks?
// Method:   every rank sends N bytes to every rank, many times in a row, in batches of about half a millisecond
//           (batches.hpp). A sample is the mean time of a batch on its slowest rank. The first call of each size is
//           checked byte by byte.
// Output:   latency in us against ranks; case "bytes 8", the bytes per pair.

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include <span>
#include <stdexcept>
#include <string>

namespace tonari::bench::alltoall {

inline constexpr double batch_us = 500;

inline unsigned seed(int from, int to) noexcept { return static_cast<unsigned>(from * 37 + to * 11 + 1); }

template <CollectiveWire W>
void check(W& wire, std::span<std::byte> sent, std::span<std::byte> received, std::size_t bytes) {
  const auto part = [&](std::span<std::byte> all, int rank) {
    return all.subspan(static_cast<std::size_t>(rank) * bytes, bytes);
  };
  for (int rank = 0; rank < wire.size(); ++rank) {
    fill_pattern(part(sent, rank), seed(wire.rank(), rank));
    fill_pattern(part(received, rank), 0);
  }
  wire.all_to_all(sent, received);
  for (int rank = 0; rank < wire.size(); ++rank) {
    if (!has_pattern(part(received, rank), seed(rank, wire.rank()))) {
      throw std::runtime_error("alltoall: rank " + std::to_string(wire.rank()) + " got other bytes than rank " +
                               std::to_string(rank) + " sent");
    }
  }
}

template <CollectiveWire W>
void run(W& wire, const Options& options, Output& output) {
  output.parameter("processors", processors(gather_places(wire)));
  for (const auto bytes : options.sizes("sizes", "8,1024")) {
    const Memory sent(static_cast<std::size_t>(wire.size()) * bytes);
    const Memory received(static_cast<std::size_t>(wire.size()) * bytes);
    const auto from = sent.bytes().first(static_cast<std::size_t>(wire.size()) * bytes);
    const auto to = received.bytes().first(from.size());
    check(wire, from, to, bytes);
    const auto samples = time_together_us(wire, batch_us, options.number("budget-us", 20000), [&](auto operations) {
      for (std::uint32_t i = 0; i < operations; ++i) wire.all_to_all(from, to);
    });
    output.samples({"bytes " + std::to_string(bytes), "latency", "us", "ranks"}, wire.size(), samples);
  }
}

}  // namespace tonari::bench::alltoall
