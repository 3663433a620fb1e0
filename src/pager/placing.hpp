#pragma once

#include "pager/kernel.hpp"
#include "pager/page.hpp"

#include <array>
#include <cstddef>

namespace tonari::pager {

/// The operations of Space that work only inside the address space: called by this process for its own, or by an agent
/// in another process. `Calls` are the system calls, which each of the two makes in its own way:
///
///   move_out(to, from, bytes), move_in(...)          Progress; to a buffer, or to a watched range
///   wake(start, bytes)                               the threads that wait for absent pages of a watched range
///   zero(to, bytes)                                  pages of a buffer
///   drop(start, bytes)                               madvise(MADV_DONTNEED); true on success
///   protect(start, bytes, writes_wait)               of a watched range; returns an error code
///   populate(start, bytes)                           madvise(MADV_POPULATE_WRITE); true on success
///   copy_shared(start, bytes)                        gives the program copies of pages that a forked child shares;
///                                                    true if that is possible
///   look_up(start, bytes, bytes_a_page)              mincore; false if a part is not mapped
///
/// Threads: as Space; prefault() one at a time.
template <class Calls>
class Placing {
 public:
  Placing(Calls calls, Address nursery) noexcept : calls_(calls), nursery_(nursery) {}

  PageSet take_out(Address block, const PageSet& pages, Address buffer, SharedPages shared) noexcept {
    empty(buffer);
    const PageSet refused = move_out(block, pages, buffer, shared);
    // Looks up which pages came instead of counting them: pages may come although the kernel refuses them (decision
    // 13).
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
          calls_.move_in(block + first * page_bytes, buffer + first * page_bytes, count * page_bytes);
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
    return calls_.move_out(buffer, nursery_, block_bytes).answer == Answer::ok;
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
  // Moves pages to the buffer. Returns the pages that the kernel refused to move. Never allows holes
  // (UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES): before Linux 6.18.51, such a call may go on for ever if a page is given back to
  // the kernel meanwhile.
  PageSet move_out(Address block, const PageSet& pages, Address buffer, SharedPages shared) noexcept {
    constexpr int refusals_max = 16;  // a block with that many pinned pages is left as it is
    PageSet rest = pages;
    PageSet refused;
    PageSet copied;
    for (int refusals = 0; !rest.is_empty();) {
      const std::size_t first = rest.next(0);
      const std::size_t count = rest.next_without(first) - first;
      const auto [bytes, answer] =
          calls_.move_out(buffer + first * page_bytes, block + first * page_bytes, count * page_bytes);
      const std::size_t moved = bytes / page_bytes;
      rest -= PageSet::of(first, moved);
      if (answer == Answer::ok) continue;
      if (answer == Answer::there) rest -= present(buffer);
      const PageSet failed = PageSet::of(first + moved, 1);
      if ((rest & failed).is_empty()) continue;
      rest -= failed;
      if (answer == Answer::gone) continue;  // a hole, or all is unmapped
      // Tries again once, with all pages that follow: the child probably shares these, too.
      if (answer == Answer::busy && shared == SharedPages::copied && !copied.has(first + moved) &&
          calls_.copy_shared(block + (first + moved) * page_bytes, (count - moved) * page_bytes)) {
        copied |= PageSet::of(first + moved, count - moved);
        rest |= failed;
        continue;
      }
      refused |= failed;
      const bool all_at_once = pages.is_whole() && first + moved == 0;  // trying each page would split a huge page
      if (all_at_once || ++refusals == refusals_max) return refused | rest;
    }
    return refused;
  }

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
