#include "pager/placing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

// Tests how an address space handles unusual results of the kernel, which no test can bring about at will.
namespace tonari {
namespace {

using pager::Address;
using pager::Answer;
using pager::block_bytes;
using pager::page_bytes;
using pager::PageSet;
using pager::Progress;

constexpr Address block = 64 * block_bytes;
constexpr Address buffer = 128 * block_bytes;

struct Kernel {
  // Moves in stop after `moved` bytes with `answer`; `present` is in memory then.
  std::size_t moved = 0;
  Answer answer = Answer::ok;
  PageSet present;

  PageSet holes;      // pages that are absent where they should move out
  PageSet pinned;     // pages that cannot move out
  PageSet shared;     // with a forked child: they can move out once they have been copied
  PageSet uncounted;  // pages that move out although the call fails
  PageSet asked_for;  // all pages that were to move out
  PageSet in_buffer;  // the pages that have moved out
  PageSet locked;     // a range with one of them cannot be dropped
  PageSet dropped;
  std::vector<std::uint64_t> woken;  // starts of the ranges
};

struct Calls {
  Kernel* kernel;
  [[nodiscard]] Progress move_in(Address, Address, std::size_t bytes) const {
    return kernel->answer == Answer::ok ? Progress{bytes, Answer::ok} : Progress{kernel->moved, kernel->answer};
  }
  [[nodiscard]] Progress move_out(Address, Address from, std::size_t bytes) const {
    const std::size_t first = (from - block) / page_bytes;
    kernel->asked_for |= PageSet::of(first, bytes / page_bytes);
    for (std::size_t page = first; page < first + bytes / page_bytes; ++page) {
      const std::size_t moved = (page - first) * page_bytes;
      if (kernel->in_buffer.has(page)) return {moved, Answer::there};
      if (kernel->holes.has(page)) return {moved, Answer::gone};
      if ((kernel->pinned | kernel->shared).has(page)) return {moved, Answer::busy};
      kernel->in_buffer |= PageSet::of(page, 1);
      if (kernel->uncounted.has(page)) {
        for (; kernel->uncounted.has(page); ++page) kernel->in_buffer |= PageSet::of(page, 1);
        return {moved, Answer::there};
      }
    }
    return {bytes, Answer::ok};
  }
  void wake(Address start, std::size_t) const { kernel->woken.push_back(start); }
  static void zero(Address, std::size_t) {}
  [[nodiscard]] bool drop(Address start, std::size_t bytes) const {
    if (start >= buffer) return true;
    const PageSet pages = PageSet::of((start - block) / page_bytes, bytes / page_bytes);
    const std::size_t end = std::min((pages & kernel->locked).next(0), pager::block_pages);
    for (std::size_t page = pages.next(0); page < end; page = pages.next(page + 1)) {
      kernel->dropped |= PageSet::of(page, 1);
    }
    return (pages & kernel->locked).is_empty();
  }
  static Answer protect(Address, std::size_t, bool) { return Answer::ok; }
  static bool populate(Address, std::size_t) { return true; }
  [[nodiscard]] bool copy_shared(Address start, std::size_t bytes) const {
    kernel->shared -= PageSet::of((start - block) / page_bytes, bytes / page_bytes);
    return true;
  }
  bool look_up(Address start, std::size_t bytes, unsigned char* pages) const {
    const bool is_buffer = start >= buffer;
    const std::size_t first = (start - (is_buffer ? buffer : block)) / page_bytes;
    for (std::size_t i = 0; i < bytes / page_bytes; ++i) {
      pages[i] = (is_buffer ? kernel->in_buffer : kernel->present).has(first + i) ? 1 : 0;
    }
    return true;
  }
};

PageSet take_out(Kernel& kernel, const PageSet& pages, pager::SharedPages shared = pager::SharedPages::stay) {
  kernel.present = pages - kernel.holes;
  return pager::Placing<Calls>({&kernel}, 0).take_out(block, pages, buffer, shared);
}

TEST(PagerPlacing, NeverAsksForPagesThatAreAbsent) {
  Kernel kernel;
  const PageSet pages = PageSet::of(2, 3) | PageSet::of(9, 1) | PageSet::of(64, 80) | PageSet::of(511, 1);
  EXPECT_EQ(take_out(kernel, pages), pages);
  EXPECT_EQ(kernel.asked_for, pages);
}

TEST(PagerPlacing, TakesOutPagesAroundHolesAndPinnedPages) {
  Kernel kernel;
  kernel.holes = PageSet::of(20, 30);  // they become zeros
  kernel.pinned = PageSet::of(60, 2);
  const PageSet pages = PageSet::of(10, 100);
  EXPECT_EQ(take_out(kernel, pages), pages - kernel.pinned);
  EXPECT_EQ(kernel.in_buffer, pages - kernel.pinned - kernel.holes);
}

TEST(PagerPlacing, CopiesPagesThatAChildSharesIfItMay) {
  using pager::SharedPages;
  Kernel kernel;
  kernel.shared = PageSet::of(10, 100);
  kernel.pinned = PageSet::of(60, 2);
  const PageSet pages = PageSet::of(0, 400);
  EXPECT_TRUE((take_out(kernel, pages, SharedPages::stay) & kernel.shared).is_empty());
  kernel.in_buffer = {};
  EXPECT_EQ(take_out(kernel, pages, SharedPages::copied), pages - kernel.pinned);
}

TEST(PagerPlacing, CopiesAWholeBlockThatAChildShares) {
  Kernel kernel;
  kernel.shared = PageSet::of(0, 512);
  EXPECT_TRUE(take_out(kernel, PageSet::of(0, 512), pager::SharedPages::copied).is_whole());
}

TEST(PagerPlacing, GoesOnAfterPagesThatMovedAlthoughTheCallFailed) {
  Kernel kernel;
  kernel.uncounted = PageSet::of(30, 25);
  const PageSet pages = PageSet::of(10, 100);
  EXPECT_EQ(take_out(kernel, pages), pages);
}

TEST(PagerPlacing, LeavesABlockWithManyPinnedPages) {
  Kernel kernel;
  kernel.pinned = PageSet::of(100, 50);
  const PageSet pages = PageSet::of(90, 200);
  EXPECT_EQ(take_out(kernel, pages), PageSet::of(90, 10));
}

TEST(PagerPlacing, WakesThreadsThatWaitForAPageWhichCameAlthoughTheKernelRefusedIt) {
  const PageSet page = PageSet::of(7, 1);
  Kernel kernel;
  kernel.answer = Answer::there;
  kernel.present = page;
  pager::Placing<Calls> placing({&kernel}, 0);
  EXPECT_EQ(placing.move_in(block, page, buffer), page);
  EXPECT_EQ(kernel.woken, std::vector<std::uint64_t>{block});
}

TEST(PagerPlacing, WakesThreadsThatWaitForPagesWhichDidNotCome) {
  Kernel kernel;
  kernel.moved = 2 * page_bytes;
  kernel.answer = Answer::busy;
  kernel.present = PageSet::of(4, 2);
  pager::Placing<Calls> placing({&kernel}, 0);
  EXPECT_EQ(placing.move_in(block, PageSet::of(4, 5), buffer), PageSet::of(4, 2));
  EXPECT_EQ(kernel.woken, std::vector<std::uint64_t>{block});
}

TEST(PagerPlacing, KnowsWhichPagesAreGoneIfSomeAreLockedInMemory) {
  const PageSet pages = PageSet::of(3, 10) | PageSet::of(40, 2);
  Kernel kernel;
  kernel.locked = PageSet::of(7, 2);
  pager::Placing<Calls> placing({&kernel}, 0);
  const PageSet gone = placing.drop_protected(block, pages, pages);
  EXPECT_EQ(gone, pages - kernel.locked);
  EXPECT_EQ(kernel.dropped, gone);
}

TEST(PagerPlacing, LeavesTheWakingOfCompleteMovesToTheKernel) {
  Kernel kernel;
  pager::Placing<Calls> placing({&kernel}, 0);
  EXPECT_EQ(placing.move_in(block, PageSet::of(4, 5), buffer), PageSet::of(4, 5));
  EXPECT_TRUE(kernel.woken.empty());
}

}  // namespace
}  // namespace tonari
