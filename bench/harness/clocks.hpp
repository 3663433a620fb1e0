#pragma once

#include "harness/wire.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace tonari::bench {

/// The offsets of all ranks' monotonic clocks from rank 0's, known to rank 0. Rank 0 exchanges messages with one rank
/// at a time and uses the fastest exchange. It assumes that the other clock was read in the middle of it; the error is
/// at most half its time.
class Clocks {
 public:
  /// Every rank calls it.
  template <StartedWire W>
  explicit Clocks(W& wire) : ahead_ns_(static_cast<std::size_t>(wire.size())) {
    for (int rank = 1; rank < wire.size(); ++rank) {
      wire.barrier();
      if (wire.rank() == 0) ask(wire, rank);
      if (wire.rank() == rank) answer(wire);
    }
  }

  /// Returns the time of rank 0's clock when the clock of `rank` showed `ns`.
  [[nodiscard]] double at_rank_0(int rank, std::uint64_t ns) const {
    return static_cast<double>(ns) - ahead_ns_.at(static_cast<std::size_t>(rank));
  }
  /// The largest possible error of an offset.
  [[nodiscard]] double error_us() const noexcept { return error_ns_ / 1000; }

 private:
  static constexpr int exchanges = 200;
  static constexpr int tag_clock = 903;

  template <Wire W>
  void ask(W& wire, int rank) {
    double fastest_ns = std::numeric_limits<double>::max();
    for (int i = 0; i < exchanges; ++i) {
      std::uint64_t theirs_ns = 0;
      const auto start = monotonic_ns();
      wire.send({}, rank, tag_clock);
      wire.receive(bytes_of(theirs_ns), rank, tag_clock);
      const auto took_ns = static_cast<double>(monotonic_ns() - start);
      if (took_ns >= fastest_ns) continue;
      fastest_ns = took_ns;
      ahead_ns_[static_cast<std::size_t>(rank)] =
          static_cast<double>(theirs_ns) - static_cast<double>(start) - took_ns / 2;
    }
    error_ns_ = std::max(error_ns_, fastest_ns / 2);
  }
  template <Wire W>
  static void answer(W& wire) {
    for (int i = 0; i < exchanges; ++i) {
      wire.receive({}, 0, tag_clock);
      wire.send(bytes_of(monotonic_ns()), 0, tag_clock);
    }
  }

  std::vector<double> ahead_ns_;
  double error_ns_ = 0;
};

}  // namespace tonari::bench
