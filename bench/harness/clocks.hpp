#pragma once

#include "harness/wire.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace tonari::bench {

/// By how much the monotonic clocks of all ranks are ahead of rank 0's, as rank 0 knows it. Found by exchanges with one
/// rank at a time: in the fastest of them the other clock was read in the middle, or half of its time away from that.
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

  /// What rank 0's clock showed when that of `rank` showed `ns`.
  [[nodiscard]] double at_rank_0(int rank, std::uint64_t ns) const {
    return static_cast<double>(ns) - ahead_ns_.at(static_cast<std::size_t>(rank));
  }
  /// How wrong that may be.
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
