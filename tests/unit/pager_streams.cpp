#include "pager/streams.hpp"

#include "../support/random.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <vector>

// Tests how streams are recognised among faults. The program is simulated: pages that were advised are resident, all
// others fault.
namespace tonari {
namespace {

using pager::Advice;
using pager::block_pages;
using pager::slice_pages;
using pager::Streams;

constexpr std::uint64_t start = 1ULL << 30;

class Program {
 public:
  void touch(std::uint64_t page, std::uint32_t thread = 1) {
    if (here_.contains(page)) return;
    ++faults;
    const bool whole = untouched(page / block_pages);
    last = streams_.fault(page, thread, whole);
    EXPECT_EQ(last.first / block_pages, page / block_pages);
    EXPECT_TRUE(last.first <= page && page < last.first + last.pages);
    for (std::uint64_t each = last.first + (page - last.first) % last.every; each < last.first + last.pages;
         each += last.every) {
      add(each, 1);
    }
    if (last.by_block) return;  // blocks read ahead wait in victim buffers, and their first access faults
    for (unsigned i = 0; i < last.count; ++i) {
      add(last.ahead + static_cast<std::uint64_t>(last.step * static_cast<std::int64_t>(i)), 1);
    }
  }

  /// Returns how many pages were brought.
  [[nodiscard]] std::size_t pages() const { return here_.size(); }

  unsigned faults = 0;
  Advice last;

 private:
  void add(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t page = first; page < first + count; ++page) here_.insert(page);
  }
  [[nodiscard]] bool untouched(std::uint64_t block) const {
    const auto next = here_.lower_bound(block * block_pages);
    return next == here_.end() || *next >= (block + 1) * block_pages;
  }

  Streams streams_;
  std::set<std::uint64_t> here_;
};

TEST(PagerStreams, AForwardStreamGrowsToReadingBlocksAhead) {
  Program program;
  program.touch(start);
  EXPECT_EQ(program.last.pages, 1U);
  program.touch(start + 1);
  program.touch(start + 2);
  EXPECT_EQ(program.last.pages, 2U);
  program.touch(start + 4);
  EXPECT_EQ(program.last.pages, 4U);

  for (std::uint64_t page = start; page < start + 8 * block_pages; ++page) program.touch(page);

  EXPECT_TRUE(program.last.by_block);
  EXPECT_EQ(program.last.ahead, start + 8 * block_pages);
  EXPECT_EQ(program.last.step, static_cast<std::int64_t>(block_pages));
  EXPECT_EQ(program.last.count, 4U);
  EXPECT_EQ(program.last.passed.value_or(0) / block_pages, start / block_pages + 6);
  EXPECT_LT(program.faults, 7 + block_pages / slice_pages + 8);
}

TEST(PagerStreams, ABackwardStreamGrowsToReadingBlocksAhead) {
  Program program;

  for (std::uint64_t page = start + 8 * block_pages; page-- > start;) program.touch(page);

  EXPECT_TRUE(program.last.by_block);
  EXPECT_TRUE(program.last.backwards);
  EXPECT_EQ(program.last.ahead, start - block_pages);
  EXPECT_EQ(program.last.step, -static_cast<std::int64_t>(block_pages));
}

TEST(PagerStreams, EightStreamsOfOneThreadAreDistinguished) {
  Program program;

  for (std::uint64_t page = 0; page < 4 * block_pages; ++page) {
    for (std::uint64_t stream = 0; stream < 8; ++stream) program.touch(start + stream * 100 * block_pages + page);
  }

  EXPECT_TRUE(program.last.by_block);
  EXPECT_LT(program.faults, 8 * (7 + block_pages / slice_pages + 4));
}

TEST(PagerStreams, AStreamContinuesAmongRandomAccesses) {
  Program program;
  test::Random random(test::seed());

  for (std::uint64_t page = 0; page < 6 * block_pages; ++page) {
    program.touch(start + page);
    if (page % 4 == 0) program.touch(2 * start + test::between(random, 0, 1 << 24), 2);
  }
  const unsigned before = program.faults;
  for (std::uint64_t page = 0; page < block_pages; ++page) program.touch(start + 6 * block_pages + page);

  EXPECT_EQ(program.faults - before, 1U) << "the stream is no longer fetched in blocks";
}

TEST(PagerStreams, AnOldStreamStartsAgainFromOnePage) {
  Program program;
  test::Random random(test::seed());
  for (std::uint64_t page = 0; page < 4 * block_pages; ++page) program.touch(start + page);
  ASSERT_TRUE(program.last.by_block);

  for (int i = 0; i < 300; ++i) program.touch(2 * start + test::between(random, 0, 1 << 24));
  program.touch(start + 4 * block_pages);

  EXPECT_EQ(program.last.pages, 1U) << "the old stream was still followed";
}

TEST(PagerStreams, ResidentBlocksDoNotEndAStream) {
  Program program;
  for (std::uint64_t page = start; page < start + 4 * block_pages; ++page) program.touch(page);

  for (std::uint64_t page = start + 7 * block_pages; page < start + 9 * block_pages; ++page) program.touch(page);

  EXPECT_TRUE(program.last.by_block);
  EXPECT_EQ(program.last.ahead, start + 9 * block_pages);
}

TEST(PagerStreams, RandomAccessesFetchLittleMoreThanTheirPage) {
  Streams streams;
  test::Random random(test::seed());
  std::size_t pages = 0;
  constexpr std::size_t faults = 20'000;

  for (std::size_t i = 0; i < faults; ++i) {
    const Advice advice = streams.fault(start + test::between(random, 0, 1 << 18), 1, true);
    pages += advice.pages + advice.count;
    EXPECT_FALSE(advice.by_block);
  }

  EXPECT_LT(pages, faults + faults / 10);
}

TEST(PagerStreams, AccessesNearEachOtherFetchLittleMoreThanTheirPages) {
  Program program;
  test::Random random(test::seed());
  std::size_t pages = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t place = start + test::between(random, 0, 1 << 18);
    for (int near = 0; near < 10; ++near) {
      const unsigned before = program.faults;
      program.touch(place + test::between(random, 0, 30));
      if (program.faults == before) continue;
      pages += program.last.pages + program.last.count;
      EXPECT_FALSE(program.last.by_block);
    }
  }
  EXPECT_LT(pages, program.faults * 2);
}

TEST(PagerStreams, StridesAreReadAhead) {
  for (const std::int64_t step : {37L, -37L, 500L}) {
    Program program;
    std::uint64_t page = start;
    for (int i = 0; i < 400; ++i, page += static_cast<std::uint64_t>(step)) program.touch(page);

    EXPECT_EQ(program.last.step, step);
    EXPECT_EQ(program.last.count, 16U);
    EXPECT_LT(program.faults, 40U);
  }
}

TEST(PagerStreams, ShortStridesAreStreams) {
  for (const std::int64_t step : {2L, -2L}) {
    Program program;
    std::uint64_t page = start + 3;
    for (int i = 0; i < 2000; ++i, page += static_cast<std::uint64_t>(step)) program.touch(page);

    EXPECT_TRUE(program.last.by_block);
    EXPECT_LT(program.faults, 80U);
  }
}

TEST(PagerStreams, LongWalksInShortStridesFetchFewPagesBetween) {
  for (const std::int64_t step : {3L, 4L, -5L, 8L}) {
    Program program;
    std::uint64_t page = start + 3;
    for (int i = 0; i < 2000; ++i, page += static_cast<std::uint64_t>(step)) program.touch(page);

    EXPECT_EQ(program.last.every, static_cast<unsigned>(std::abs(step)));
    EXPECT_LT(program.faults, 2000U / 3);
    EXPECT_LT(program.pages(), 2000U + 600U);
  }
}

// Rows of 6 pages; 16 rows at a time are walked from left to right.
TEST(PagerStreams, RowsOfABlockedMatrixAreStreams) {
  Program program;
  for (std::uint64_t rows = 0; rows < 100; ++rows) {
    for (std::uint64_t column = 0; column < 6; ++column) {
      for (std::uint64_t row = 0; row < 16; ++row) program.touch(start + (rows * 16 + row) * 6 + column);
    }
  }

  EXPECT_TRUE(program.last.by_block);
  EXPECT_LT(program.faults, 150U);
}

TEST(PagerStreams, SeveralStridesAreDistinguished) {
  Program program;

  for (std::uint64_t i = 0; i < 300; ++i) {
    for (std::uint64_t stream = 0; stream < 4; ++stream) program.touch(start + stream * 1'000'003 + i * (20 + stream));
  }

  EXPECT_LT(program.faults, 4 * 40U);
}

}  // namespace
}  // namespace tonari
