#pragma once

#include "base/lock.hpp"
#include "share/array/page_states.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tonari::share {

/// A set of ranks, one bit per rank modulo 64. Ranks that share a bit are told together, some of them for nothing.
using Ranks = std::uint64_t;
constexpr Ranks rank_bit(int rank) noexcept { return Ranks{1} << (static_cast<unsigned>(rank) % 64); }

/// A rank's knowledge of 64 adjacent pages of an array. All zeros is a valid block that was not begun.
struct PageBlock {
  SpinLock lock;  // protects the rest. Held while the mapping is changed, too, but never while waiting
  bool is_begun = false;
  PageStates states;
  std::array<std::uint32_t, pages_per_block> homes{};  // each page's home, as far as this rank knows
  // Valid for pages that have their home here:
  std::array<Ranks, pages_per_block> copyset{};     // ranks that may have a copy and were not told of its latest change
  std::array<Ranks, pages_per_block> up_to_date{};  // ranks whose copies equal the home's contents
  std::array<std::uint32_t, pages_per_block> copies_given{};    // a count: shows whether copies were given since
  std::array<std::uint32_t, pages_per_block> last_writer{};     // 1 + the only rank that has changed it lately; 0: none
  std::array<std::uint8_t, pages_per_block> releases_in_row{};  // how often last_writer has changed it
};

/// A set of block numbers. Many threads add to it, one at a time takes all out.
class BlockSet {
 public:
  explicit BlockSet(std::size_t blocks) : words_((blocks + 63) / 64) {}

  void add(std::size_t block) noexcept {
    // Release: the thread that takes the block sees why it was added. Word before flag: is_empty() may return true for
    // a block that another thread is adding, never to the thread that has added it.
    words_[block / 64].fetch_or(bit(block % 64), std::memory_order_release);
    some_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool is_empty() const noexcept { return !some_.load(std::memory_order_acquire); }
  /// Takes all out, and calls visit(block) for each.
  template <class Visit>
  void take(Visit visit) {
    if (!some_.exchange(false, std::memory_order_acq_rel)) return;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].load(std::memory_order_relaxed) == 0) continue;
      const Mask taken = words_[i].exchange(0, std::memory_order_acquire);
      for_each_page(taken, [&](std::size_t block) { visit(i * 64 + block); });
    }
  }

 private:
  std::vector<std::atomic<Mask>> words_;
  std::atomic<bool> some_{false};
};

}  // namespace tonari::share
