#pragma once

#include "pager/page.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tonari::pager {

/// The pages at which a thread has faulted lately. They tell a fault in a stream from a scattered one.
///
/// Threads: one.
class RecentFaults {
 public:
  /// Returns true if an earlier fault leads to `page`: all pages between the two are here, or the earlier one is in the
  /// next block, and `page` at its border. `here` are the pages of this page's block.
  [[nodiscard]] bool lead_to(std::uint64_t page, const PageSet& here) const noexcept {
    const std::uint64_t block = page / block_pages * block_pages;
    const std::size_t index = page - block;
    return std::ranges::any_of(pages_, [&](std::uint64_t each) {
      const std::uint64_t distance = each < page ? page - each : each - page;
      if (distance == 0 || distance > block_pages) return false;
      if (each < block) return index == 0;
      if (each - block >= block_pages) return index == block_pages - 1;
      return each < page ? here.next_without(each - block) == index : here.next_without(index + 1) > each - block;
    });
  }
  void add(std::uint64_t page) noexcept {
    pages_[next_] = page;
    next_ = (next_ + 1) % pages_.size();
  }

 private:
  std::array<std::uint64_t, 8> pages_{};
  std::size_t next_ = 0;
};

}  // namespace tonari::pager
