#pragma once

#include "pager/checksum.hpp"
#include "pager/page.hpp"
#include "pager/policy.hpp"
#include "pager/space.hpp"

#include <atomic>
#include <bit>
#include <cstdint>
#include <new>

namespace tonari::pager {

// Where the pages of a block are. Each page is in one of four states:
//
//             copied in (fault)                    taken out
//    away  ---------------------->  here  ---------------------->  beside
//     ^   <----------------------    ^                               |
//     |        discarded             +-------------------------------+
//     |                                 moved back (fault)           |
//     +--------------------------------------------------------------+
//     |        dropped: its bytes are at the source (or are zeros)
//     +------> beside: read ahead          +------> lost: the source failed; a touch raises a signal
//
//    away    only at the source, or zeros that were never stored
//    here    in the region: the program reads and writes it, and the pager does not touch it
//    beside  in the block's buffer in the same address space (the victim buffer): nobody writes it, its checksum is
//            the source's, and a fault gets it back without a copy
//
// A block is free or held. Only the thread that holds it changes any of this, moves its pages and writes their
// checksums. A fault that finds the block held is counted there. The holder, when it lets go, then wakes all threads
// that wait for pages of the block, and they fault again. So faults are queued only in the kernel, and no fault is
// lost:
//
//    free  --try_hold-->  held  --try_hold by a fault-->  held, wanted
//     ^                    |                                   |
//     +------let_go--------+-----------let_go: wakes-----------+
//
// One word says so. It also has the sum of the times at which the counted faults were read, so that the holder knows
// how long the threads have waited:
//
//    bit 0   1 ............ 15   16 ............................ 63
//    +------+-----------------+------------------------------------+
//    | held | counted faults  | sum of times in ns, modulo 2^48    |
//    +------+-----------------+------------------------------------+

/// The faults that were dropped because their block was held.
class DroppedFaults {
 public:
  constexpr explicit DroppedFaults(std::uint64_t count, std::uint64_t sum_ns) noexcept
      : count_(count), sum_ns_(sum_ns) {}
  [[nodiscard]] constexpr bool is_empty() const noexcept { return count_ == 0; }
  /// Returns the time until `now_ns` that their threads have waited, added up. Right if that is less than 78 hours.
  [[nodiscard]] constexpr std::uint64_t waited_ns(std::uint64_t now_ns) const noexcept {
    return (count_ * now_ns - sum_ns_) & ((1ULL << 48) - 1);
  }

 private:
  std::uint64_t count_;
  std::uint64_t sum_ns_;
};

/// State of 2 MiB of a region. All bytes 0 mean free; Region::know() does the rest for the first holder.
class alignas(64) Block {
 public:
  /// Called for a fault that was read at `read_ns`. If the block is held, the fault is counted and can be dropped: its
  /// thread is woken when the block is free. Pairs with let_go().
  [[nodiscard]] bool try_hold_or_want(std::uint64_t read_ns) noexcept {
    std::uint64_t state = state_.load(std::memory_order_relaxed);  // may be outdated; the exchange below decides
    for (;;) {
      const bool is_held = (state & held) != 0;
      std::uint64_t next = held;
      // More threads than can be counted are woken with the others; the time that they wait is not counted.
      if (is_held) next = (state & counted) == counted ? state : state + one_fault + (read_ns << sum_shift);
      // Acquire: sees the writes of the last holder. Release: if the block is held, its holder sees the fault, and all
      // that the kernel did for it, before it wakes.
      if (state_.compare_exchange_weak(state, next, std::memory_order_acq_rel, std::memory_order_relaxed)) {
        return !is_held;
      }
    }
  }
  [[nodiscard]] bool try_hold() noexcept {
    std::uint64_t expected = 0;
    return state_.compare_exchange_strong(expected, held, std::memory_order_acquire, std::memory_order_relaxed);
  }
  /// Returns the faults whose threads want the block and must be woken.
  [[nodiscard]] DroppedFaults let_go() noexcept {
    const std::uint64_t state =
        state_.exchange(0, std::memory_order_acq_rel);  // release: publishes the holder's writes
    return DroppedFaults((state & counted) / one_fault, state >> sum_shift);
  }

  /// Where threads of the address space serve their own faults, a thread that was counted waits here. Only the futex's
  /// address: it is read by waiting_value().
  [[nodiscard]] const std::atomic<std::uint32_t>& waiting_word() const noexcept {
    static_assert(std::endian::native == std::endian::little && sizeof state_ == 8);
    return *std::launder(reinterpret_cast<const std::atomic<std::uint32_t>*>(&state_));
  }
  /// Relaxed: a thread that has waited touches its page again.
  [[nodiscard]] std::uint32_t waiting_value() const noexcept {
    return static_cast<std::uint32_t>(state_.load(std::memory_order_relaxed));
  }
  /// Returns true if `word`, from waiting_value(), says that the block is held, and its holder wakes whoever waits.
  [[nodiscard]] static bool wakes_at_the_end(std::uint32_t word) noexcept {
    return (word & held) != 0 && (word & counted) != 0;
  }

  // Only for the holder:
  PageSet here;
  PageSet beside;
  PageSet lost;
  bool hidden = false;        // see Pager::hide()
  Buffer buffer = no_buffer;  // holds the pages that are beside

  PageSet touched;  // pages that have come, or have data at the source, and were not discarded since
  // The part of `touched` that came as zeros along with another page. When they leave, and are still zeros, the program
  // has probably not touched them.
  PageSet assumed;
  PageSet fetched;               // since the statistics were told to count anew for the last time
  std::uint32_t fetched_in = 0;  // the count that `fetched` belongs to

  std::uint64_t stored_at = 0;  // Space::reference_to() the block's bytes at the source
  PolicyEntry entry;            // belongs to Policy

 private:
  static constexpr std::uint64_t held = 1;
  static constexpr std::uint64_t one_fault = 2;
  static constexpr int sum_shift = 16;
  static constexpr std::uint64_t counted = (1ULL << sum_shift) - one_fault;
  std::atomic<std::uint64_t> state_{0};
};

}  // namespace tonari::pager
