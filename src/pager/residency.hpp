#pragma once

#include "pager/checksum.hpp"
#include "pager/page.hpp"
#include "pager/policy.hpp"
#include "pager/space.hpp"

#include <atomic>
#include <cstdint>

namespace tonari::pager {

// Where the pages of a block are. Each is in one of four places:
//
//             copied in (fault)                    taken out
//    away  ---------------------->  here  ---------------------->  beside
//     ^   <----------------------    ^                               |
//     |        discarded             +-------------------------------+
//     |                                 moved back (fault)           |
//     +--------------------------------------------------------------+
//     |        dropped: its bytes are at the source (or are zeros)
//     +------> beside: read ahead          +------> lost: the source failed; touched, it is a signal
//
//    away    at the source only, or zeros that nobody ever stored
//    here    in the region: the program reads and writes it, and we do not touch it
//    beside  in the block's buffer, next door: nobody writes it, its checksum is that of the source, and a fault gets
//    it
//            back without a copy
//
// A block is free or held. Whoever holds it, and nobody else, changes any of this, moves its pages, and writes their
// checksums. Who cannot get hold of it leaves `wanted`, and whoever lets go wakes all who wait for pages of the block:
// they fault again. So faults are queued nowhere but in the kernel, and none is forgotten:
//
//    free  --try_hold-->  held  --try_hold by a fault-->  held, wanted
//     ^                    |                                   |
//     +------let_go--------+-----------let_go: wakes-----------+

/// What is known of 2 MiB of a region. All bytes 0 it is free; Region::know() does the rest for its first holder.
class alignas(64) Block {
 public:
  /// For a fault, which comes again when the block is free: pairs with let_go().
  [[nodiscard]] bool try_hold_or_want() noexcept {
    std::uint32_t state = state_.load(std::memory_order_relaxed);  // a guess; the exchange below decides
    for (;;) {
      const std::uint32_t next = (state & held) == 0 ? held : held | wanted;
      // Acquire: what the last holder wrote. Where it fails `wanted` is left, and needs no order: a wake follows.
      if (state_.compare_exchange_weak(state, next, std::memory_order_acquire, std::memory_order_relaxed)) {
        return next == held;
      }
    }
  }
  [[nodiscard]] bool try_hold() noexcept {
    std::uint32_t expected = 0;
    return state_.compare_exchange_strong(expected, held, std::memory_order_acquire, std::memory_order_relaxed);
  }
  /// True: somebody wants the block, and is to be woken.
  [[nodiscard]] bool let_go() noexcept {
    return (state_.exchange(0, std::memory_order_acq_rel) & wanted) != 0;  // release: all that the holder wrote
  }

  // By the holder.
  PageSet here;
  PageSet beside;
  PageSet lost;
  Buffer buffer = no_buffer;  // of what is beside

  bool touched = false;  // something has come, and not all is discarded

  PolicyEntry entry;  // the policy's

 private:
  static constexpr std::uint32_t held = 1;
  static constexpr std::uint32_t wanted = 2;
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace tonari::pager
