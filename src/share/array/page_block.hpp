#pragma once

#include "base/lock.hpp"
#include "pager/page.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tonari::share {

using pager::page_bytes;

/// Some of the pages of a block, a bit each.
using Mask = std::uint64_t;
inline constexpr std::size_t pages_a_block = 64;

constexpr Mask bit(std::size_t page) noexcept { return Mask{1} << page; }
constexpr Mask bits(std::size_t first, std::size_t count) noexcept {
  return (count == pages_a_block ? ~Mask{0} : bit(count) - 1) << first;
}
constexpr bool has(Mask mask, std::size_t page) noexcept { return (mask >> page & 1) != 0; }

/// Calls visit(page) for each page of the mask.
template <class Visit>
void for_each_page(Mask mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::size_t>(std::countr_zero(mask)));
}
/// Calls visit(first, count) for each run of neighbours.
template <class Visit>
void for_each_run(Mask mask, Visit visit) {
  while (mask != 0) {
    const auto first = static_cast<std::size_t>(std::countr_zero(mask));
    const auto count = static_cast<std::size_t>(std::countr_one(mask >> first));
    visit(first, count);
    mask &= ~bits(first, count);
  }
}
/// The run of neighbours in `mask` that `page` is in, at most `count_max` of them, from `page` on.
constexpr std::size_t run_from(Mask mask, std::size_t page, std::size_t count_max) noexcept {
  const auto count = static_cast<std::size_t>(std::countr_one(mask >> page));
  return count < count_max ? count : count_max;
}

/// Ranks, a bit each; of more than 64 several share one: who is told for nothing loses nothing.
using Ranks = std::uint64_t;
constexpr Ranks rank_bit(int rank) noexcept { return Ranks{1} << (static_cast<unsigned>(rank) % 64); }

/// What a rank knows of 64 neighbouring pages of an array.
///
///   absent --fault--> coming --reply--> clean --write--> dirty --release--> clean --acquire, stale--> absent
///
/// mapped    the program reads it without a fault          writable  it writes it without one
/// A page that is written in this interval, or opened to be, is dirty, if anybody has to be told: at the home if there
/// are copies, elsewhere always. Then it is writable. All that is mapped, writable and not dirty is the home's, and has
/// no copies; or its writes are named by the program.
struct Block {
  SpinLock lock;  // of the rest. Held for operations on the mapping, too, but never while waiting.
  bool is_begun = false;
  // Of pages:
  Mask home = 0;     // this rank is their home
  Mask present = 0;  // the file has them
  Mask mapped = 0;
  Mask writable = 0;
  Mask dirty = 0;
  Mask coming = 0;  // asked for, or about to be
  Mask late = 0;    // coming, and older than an acquire: not to be used
  Mask parked = 0;  // not to be asked for until what was changed there is where it belongs: who touches them waits
  Mask stale = 0;   // changed by others, as they have told: not to be used after the next acquire
  Mask held = 0;    // changed by this rank, which is about to multicast them: neither told nor dropped
  // migrating.cpp:
  Mask written = 0;   // by this rank, since others have changed it
  Mask migrates = 0;  // it was so the last time, too
  Mask kept = 0;      // stale, coming, and mapped still: protected
  Mask opened = 0;    // at home: dirty before it is written; the twin tells whether it was
  std::array<std::uint32_t, pages_a_block> homes{};  // as this rank believes
  // Of the pages that this rank is home of:
  std::array<Ranks, pages_a_block> copies{};           // who may have some that they have not been told of a change of
  std::array<Ranks, pages_a_block> fresh{};            // whose are as the home's
  std::array<std::uint32_t, pages_a_block> fetches{};  // how often they were: it tells whether copies have been added
  std::array<std::uint32_t, pages_a_block> writer{};   // 1 + the only one that has changed it lately; 0: none
  std::array<std::uint8_t, pages_a_block> streak{};    // how often
};

/// Numbers of blocks, added by many and taken by one at a time.
class BlockSet {
 public:
  explicit BlockSet(std::size_t blocks) : words_((blocks + 63) / 64) {}

  void add(std::size_t block) noexcept {
    // Release: whoever takes it sees what it was added for. Both: is_empty() may say that it is when it no longer is,
    // but not to who has added.
    words_[block / 64].fetch_or(bit(block % 64), std::memory_order_release);
    some_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool is_empty() const noexcept { return !some_.load(std::memory_order_acquire); }
  /// Takes them all out, and calls visit(block) for each.
  template <class Visit>
  void take(Visit visit) {
    if (!some_.exchange(false, std::memory_order_acq_rel)) return;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].load(std::memory_order_relaxed) == 0) continue;
      const Mask taken = words_[i].exchange(0, std::memory_order_acquire);
      for_each_page(taken, [&](std::size_t page) { visit(i * 64 + page); });
    }
  }

 private:
  std::vector<std::atomic<Mask>> words_;
  std::atomic<bool> some_{false};
};

}  // namespace tonari::share
