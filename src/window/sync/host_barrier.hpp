#pragma once

#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"

#include <tonari/job.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tonari::window {

// A barrier between hosts. The ranks of a host meet in their shared memory. The host's first member, the *leader*, then
// meets the other leaders, and releases its host. Leaders meet by dissemination: in exchange e each leader tells the
// one 2^e places after it, and waits for the one 2^e places before it. After log2(n) exchanges each has heard from
// all.
//
//   exchange 0:  0 -> 1 -> 2 -> 3 -> 0        exchange 1:  0 -> 2, 1 -> 3, 2 -> 0, 3 -> 1
//
// A leader that knows of a dead member says so along with it.

/// State of a barrier as one number: bit 0 is 1 if a member has gone; above it is the round.
constexpr std::uint64_t met_of(std::uint64_t round, bool gone) noexcept { return round << 1 | (gone ? 1 : 0); }
constexpr std::uint64_t round_of(std::uint64_t met) noexcept { return met >> 1; }

/// The message between leaders.
struct Met {
  std::uint64_t met;
  std::uint32_t exchange;
  std::uint32_t reserved;
};

/// A leader's side.
///
/// Threads: take() the holder of the progress lock; the rest the thread at the barrier.
class HostBarrier {
 public:
  HostBarrier(fabric::Engine& engine, fabric::SendQueue& send_queue) noexcept
      : engine_(engine), send_queue_(send_queue) {}

  /// `leaders`: of all hosts, in the order of the group. This rank is among them if it is a leader.
  void open(std::vector<int> leaders, std::uint32_t window);
  /// Returns the number of exchanges.
  [[nodiscard]] std::size_t exchanges() const noexcept;
  void tell(std::size_t exchange, std::uint64_t round, bool gone) noexcept;
  /// Returns the rank that an exchange waits for.
  [[nodiscard]] int awaited(std::size_t exchange) const noexcept {
    return leaders_[(self_ + leaders_.size() - (std::size_t{1} << exchange)) % leaders_.size()];
  }
  /// Returns the state that the awaited rank has sent for the round, or for an earlier one.
  [[nodiscard]] std::uint64_t heard(std::size_t exchange, std::uint64_t round) const noexcept {
    return heard_[exchange][round & 1].load(std::memory_order_acquire);  // acquire: pushes before it
  }
  void take(int rank, const Met& met) noexcept;

 private:
  static constexpr std::size_t exchanges_max = 32;

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  std::uint32_t window_ = 0;
  std::vector<int> leaders_;
  std::size_t self_ = 0;
  // The last two rounds of each exchange: while this rank waits in one round, the other may already be in the next.
  std::array<std::array<std::atomic<std::uint64_t>, 2>, exchanges_max> heard_{};
};

}  // namespace tonari::window
