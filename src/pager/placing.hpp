#pragma once

#include "pager/kernel.hpp"
#include "pager/page.hpp"

#include <array>
#include <cstddef>

namespace tonari::pager {

/// The operations of Space that work only inside the address space: called by this process for its own, or by an agent
/// in another process. `Calls` are the system calls, which each of the two makes in its own way:
///
///   move_out(to, from, bytes, holes), move_in(...)   Progress; to a buffer, or to a watched range
///   wake(start, bytes)                               the threads that wait for absent pages of a watched range
///   zero(to, bytes)                                  pages of a buffer
///   drop(start, bytes)                               madvise(MADV_DONTNEED); true on success
///   protect(start, bytes, writes_wait)               of a watched range; returns an error code
///   populate(start, bytes)                           madvise(MADV_POPULATE_WRITE); true on success
///   look_up(start, bytes, bytes_a_page)              mincore; false if a part is not mapped
///
/// Threads: as Space; prefault() one at a time.
template <class Calls>
class Placing {
 public:
  Placing(Calls calls, Address nursery) noexcept : calls_(calls), nursery_(nursery) {}

  PageSet take_out(Address block, const PageSet& pages, Address buffer) noexcept {
    constexpr int refusals_max = 16;  // a block with that many pinned pages is left as it is
    empty(buffer);
    PageSet refused;
    std::size_t last = 0;
    for_each_run(pages, block_pages, [&](std::size_t first, std::size_t count) { last = first + count; });

    int refusals = 0;
    for (std::size_t page = pages.next(0); page < last; ++page) {
      const auto [bytes, answer] = calls_.move_out(buffer + page * page_bytes, block + page * page_bytes,
                                                   (last - page) * page_bytes, Holes::allowed);
      page += bytes / page_bytes;
      if (answer == Answer::ok) break;
      const bool all_at_once = pages.is_whole() && page == 0;  // a huge page would be split by trying each page
      if (all_at_once || ++refusals == refusals_max) {
        refused |= PageSet::of(page, block_pages - page);
        break;
      }
      refused |= PageSet::of(page, 1);
    }
    // Looks up which pages came instead of counting them. Linux 6.18 was seen to return EEXIST for a page that had left
    // the block, while the program was just writing it for the first time (decision 13).
    const PageSet came = present(buffer);
    return came | fill_holes(block, buffer, pages - refused - came);
  }

  PageSet move_in(Address block, const PageSet& pages, Address buffer) noexcept {
    // A huge page can be moved as one only where there is no page table for small pages. With no page there, this frees
    // the table.
    if (pages.is_whole()) (void)calls_.drop(block, block_bytes);
    bool complete = true;
    for_each_run(pages, block_pages, [&](std::size_t first, std::size_t count) {
      const auto [bytes, answer] =
          calls_.move_in(block + first * page_bytes, buffer + first * page_bytes, count * page_bytes, Holes::refused);
      complete = complete && answer == Answer::ok;
    });
    if (complete) return pages;
    // The kernel wakes only for pages that it reports as moved. Others may have come, too (decision 13): threads that
    // wait for them touch them again.
    calls_.wake(block, block_bytes);
    return pages & present(block);
  }

  bool prefault(Address buffer) noexcept {
    empty(buffer);
    if (!calls_.populate(nursery_, block_bytes)) return false;
    return calls_.move_out(buffer, nursery_, block_bytes, Holes::refused).answer == Answer::ok;
  }

  void empty(Address buffer) noexcept { (void)calls_.drop(buffer, block_bytes); }

  /// Returns the pages that the kernel has in memory.
  PageSet present(Address block) noexcept {
    std::array<unsigned char, block_pages> there{};
    // If a part is not mapped, as in the first and the last block of a region, asks page by page.
    if (!calls_.look_up(block, block_bytes, there.data())) {
      for (std::size_t page = 0; page < block_pages; ++page) {
        if (!calls_.look_up(block + page * page_bytes, page_bytes, &there[page])) there[page] = 0;
      }
    }
    PageSet result;
    for (std::size_t page = 0; page < block_pages; ++page) {
      if ((there[page] & 1) != 0) result |= PageSet::of(page, 1);
    }
    return result;
  }

  /// Protects all of the pages, or none: something else may be mapped in between.
  PageSet protect(Address block, const PageSet& pages) noexcept {
    if (pages.is_empty()) return {};
    const auto [first, count] = span_of(pages);
    const Address at = block + first * page_bytes;
    if (calls_.protect(at, count * page_bytes, true) == Answer::ok) return pages;
    (void)calls_.protect(at, count * page_bytes, false);  // ends where the call above ended
    return {};
  }

  /// Drops `going` and lets writes to all other `pages` go on. If all pages go, one call drops them, which interrupts
  /// the processors that run the program once.
  PageSet drop_protected(Address block, const PageSet& pages, const PageSet& going) noexcept {
    if (pages.is_empty()) return {};
    const auto [start, whole] = span_of(pages);
    if (going == pages && calls_.drop(block + start * page_bytes, whole * page_bytes)) return pages;
    PageSet gone;
    for_each_run(going, block_pages,
                 [&](std::size_t first, std::size_t count) { gone |= drop_run(block, first, count); });
    (void)calls_.protect(block + start * page_bytes, whole * page_bytes, false);
    return gone;
  }

 private:
  // Returns the pages that are gone. A call that fails, because some pages are locked in memory, may have dropped
  // others.
  PageSet drop_run(Address block, std::size_t first, std::size_t count) noexcept {
    if (calls_.drop(block + first * page_bytes, count * page_bytes)) return PageSet::of(first, count);
    PageSet gone;
    for (std::size_t page = first; count != 1 && page < first + count; ++page) gone |= drop_run(block, page, 1);
    return gone;
  }

  struct Span {
    std::size_t first;
    std::size_t count;
  };
  // Returns the smallest run of pages that contains all of `pages`.
  static Span span_of(const PageSet& pages) noexcept {
    const std::size_t first = pages.next(0);
    std::size_t end = first;
    for_each_run(pages, block_pages, [&](std::size_t page, std::size_t count) { end = page + count; });
    return {first, end - first};
  }

  // Handles pages that should have come and did not. A page that the program has given back to the kernel unseen is a
  // hole: it is filled with zeros, as the program would find it. A page that is still in the block stays there. Returns
  // the pages that have come after all.
  PageSet fill_holes(Address block, Address buffer, const PageSet& missing) noexcept {
    if (missing.is_empty()) return {};
    const PageSet holes = missing - present(block);
    for_each_run(holes, block_pages, [&](std::size_t first, std::size_t count) {
      // A page that is only swapped out exists, and stays unchanged.
      calls_.zero(buffer + first * page_bytes, count * page_bytes);
    });
    return holes;
  }

  Calls calls_;
  Address nursery_;
};

}  // namespace tonari::pager
