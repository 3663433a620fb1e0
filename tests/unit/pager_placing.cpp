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
using pager::Holes;
using pager::page_bytes;
using pager::PageSet;
using pager::Progress;

constexpr Address block = 64 * block_bytes;
constexpr Address buffer = 128 * block_bytes;

/// A kernel whose moves stop after `moved` bytes with `answer`, and that then has `present` in memory.
struct Kernel {
  std::size_t moved = 0;
  Answer answer = Answer::ok;
  PageSet present;
  std::vector<std::uint64_t> woken;  // starts of the ranges
  PageSet locked;                    // a range with one of them cannot be dropped
  PageSet dropped;
};

struct Calls {
  Kernel* kernel;
  [[nodiscard]] Progress move_in(Address, Address, std::size_t bytes, Holes) const {
    return kernel->answer == Answer::ok ? Progress{bytes, Answer::ok} : Progress{kernel->moved, kernel->answer};
  }
  static Progress move_out(Address, Address, std::size_t bytes, Holes) { return {bytes, Answer::ok}; }
  void wake(Address start, std::size_t) const { kernel->woken.push_back(start); }
  static void zero(Address, std::size_t) {}
  [[nodiscard]] bool drop(Address start, std::size_t bytes) const {
    const PageSet pages = PageSet::of((start - block) / page_bytes, bytes / page_bytes);
    const std::size_t first_locked = (pages & kernel->locked).next(0);
    for (std::size_t page = pages.next(0); page < std::min(first_locked, pager::block_pages);
         page = pages.next(page + 1)) {
      kernel->dropped |= PageSet::of(page, 1);
    }
    return (pages & kernel->locked).is_empty();
  }
  static Answer protect(Address, std::size_t, bool) { return Answer::ok; }
  static bool populate(Address, std::size_t) { return true; }
  bool look_up(Address start, std::size_t bytes, unsigned char* pages) const {
    for (std::size_t i = 0; i < bytes / page_bytes; ++i) {
      pages[i] = kernel->present.has((start - block) / page_bytes + i) ? 1 : 0;
    }
    return true;
  }
};

TEST(PagerPlacing, WakesThreadsThatWaitForAPageWhichCameAlthoughTheKernelRefusedIt) {
  const PageSet page = PageSet::of(7, 1);
  Kernel kernel{.moved = 0, .answer = Answer::there, .present = page, .woken = {}, .locked = {}, .dropped = {}};
  pager::Placing<Calls> placing({&kernel}, 0);
  EXPECT_EQ(placing.move_in(block, page, buffer), page);
  EXPECT_EQ(kernel.woken, std::vector<std::uint64_t>{block});
}

TEST(PagerPlacing, WakesThreadsThatWaitForPagesWhichDidNotCome) {
  Kernel kernel{.moved = 2 * page_bytes,
                .answer = Answer::busy,
                .present = PageSet::of(4, 2),
                .woken = {},
                .locked = {},
                .dropped = {}};
  pager::Placing<Calls> placing({&kernel}, 0);
  EXPECT_EQ(placing.move_in(block, PageSet::of(4, 5), buffer), PageSet::of(4, 2));
  EXPECT_EQ(kernel.woken, std::vector<std::uint64_t>{block});
}

TEST(PagerPlacing, KnowsWhichPagesAreGoneIfSomeAreLockedInMemory) {
  const PageSet pages = PageSet::of(3, 10) | PageSet::of(40, 2);
  Kernel kernel{
      .moved = 0, .answer = Answer::ok, .present = pages, .woken = {}, .locked = PageSet::of(7, 2), .dropped = {}};
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
