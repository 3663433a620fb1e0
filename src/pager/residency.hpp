#pragma once

#include "pager/checksum.hpp"
#include "pager/page.hpp"
#include "pager/policy.hpp"
#include "pager/space.hpp"

#include <atomic>
#include <cstdint>

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
// checksums. A fault that finds the block held sets `wanted`. The holder, when it lets go, then wakes all threads that
// wait for pages of the block, and they fault again. So faults are queued only in the kernel, and no fault is lost:
//
//    free  --try_hold-->  held  --try_hold by a fault-->  held, wanted
//     ^                    |                                   |
//     +------let_go--------+-----------let_go: wakes-----------+

/// State of 2 MiB of a region. All bytes 0 mean free; Region::know() does the rest for the first holder.
class alignas(64) Block {
 public:
  /// Called for a fault, which is repeated when the block is free. Pairs with let_go().
  [[nodiscard]] bool try_hold_or_want() noexcept {
    std::uint32_t state = state_.load(std::memory_order_relaxed);  // may be outdated; the exchange below decides
    for (;;) {
      const std::uint32_t next = (state & held) == 0 ? held : held | wanted;
      // Acquire: sees the writes of the last holder. If the block is held, `wanted` is set, which needs no order: a
      // wake follows.
      if (state_.compare_exchange_weak(state, next, std::memory_order_acquire, std::memory_order_relaxed)) {
        return next == held;
      }
    }
  }
  [[nodiscard]] bool try_hold() noexcept {
    std::uint32_t expected = 0;
    return state_.compare_exchange_strong(expected, held, std::memory_order_acquire, std::memory_order_relaxed);
  }
  /// Returns true if a thread wants the block and must be woken.
  [[nodiscard]] bool let_go() noexcept {
    return (state_.exchange(0, std::memory_order_acq_rel) & wanted) != 0;  // release: publishes the holder's writes
  }

  // Only for the holder:
  PageSet here;
  PageSet beside;
  PageSet lost;
  Buffer buffer = no_buffer;  // holds the pages that are beside

  bool touched = false;  // pages have come, and not all of them were discarded since

  PolicyEntry entry;  // belongs to Policy

 private:
  static constexpr std::uint32_t held = 1;
  static constexpr std::uint32_t wanted = 2;
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace tonari::pager
