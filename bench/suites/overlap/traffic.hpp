#pragma once

#include "harness/gather.hpp"
#include "harness/wire.hpp"

#include "base/clock.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace tonari::bench::overlap {

inline constexpr int tag_gather = 21;
inline constexpr int tag_tell = 22;
inline constexpr int tag_traffic = 23;
inline constexpr int tag_stop = 24;

inline constexpr int traffic_ranks = 2;
inline constexpr std::size_t traffic_bytes = std::size_t{1} << 20;

/// Ranks 0 to size - 1, which compute. Other ranks do not take part in their collectives.
template <StartedWire W>
class Team {
 public:
  Team(W& wire, int size) noexcept : wire_(wire), size_(size) {}

  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool has_this_rank() const noexcept { return wire_.rank() < size_; }

  template <class T>
  std::vector<T> gather(const T& mine) {
    return gather_values(wire_, size_, mine, tag_gather);
  }
  /// Returns rank 0's value on every rank.
  template <class T>
  T tell(T value) {
    const std::span one(&value, 1);
    if (wire_.rank() != 0) wire_.receive(std::as_writable_bytes(one), 0, tag_tell);
    for (int rank = 1; wire_.rank() == 0 && rank < size_; ++rank) wire_.send(std::as_bytes(one), rank, tag_tell);
    return value;
  }
  void barrier() { tell(gather(char{})[0]); }

 private:
  W& wire_;
  int size_;
};

/// The two ranks after the team: the first streams messages to the second while the team computes.
template <StartedWire W>
class Traffic {
 public:
  Traffic(W& wire, int first) noexcept : wire_(wire), first_(first) {}

  /// Called by these two ranks. Returns when rank 0 stops them.
  void run() {
    if (wire_.rank() == first_) {
      stream();
    } else {
      sink();
    }
  }
  /// Called by rank 0. Stops the stream and returns its rate in GB/s.
  double stop() {
    double rate = 0;
    wire_.send({}, first_, tag_stop);
    wire_.receive(std::as_writable_bytes(std::span(&rate, 1)), first_, tag_stop);
    return rate;
  }

 private:
  void stream() {
    auto stopped = wire_.start_receive({}, 0, tag_stop);
    std::vector<std::byte> message(traffic_bytes);
    double bytes = 0;
    const auto start = monotonic_ns();
    for (bool last = false; !last;) {
      last = wire_.test(stopped);
      message[0] = last ? last_one : std::byte{0};
      wire_.send(message, first_ + 1, tag_traffic);
      bytes += traffic_bytes;
    }
    const double rate = bytes / static_cast<double>(monotonic_ns() - start);
    wire_.send(std::as_bytes(std::span(&rate, 1)), 0, tag_stop);
  }
  void sink() {
    std::vector<std::byte> message(traffic_bytes);
    while (message[0] != last_one) wire_.receive(message, first_, tag_traffic);
  }

  static constexpr std::byte last_one{1};

  W& wire_;
  int first_;
};

}  // namespace tonari::bench::overlap
