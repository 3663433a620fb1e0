#include "pager/checksum_code.hpp"
#include "pager/page.hpp"
#include "pager/pool.hpp"
#include "pager/region.hpp"

#include "../support/pager.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

// Tests of the records of pages, blocks and buffers, and of the guards that protect them.
namespace tonari {
namespace {

using pager::Block;
using pager::block_pages;
using pager::Buffer;
using pager::PageSet;
using pager::Pool;

TEST(PagerPages, ASetReturnsItsRuns) {
  const PageSet set = PageSet::of(0, 1) | PageSet::of(60, 8) | PageSet::of(500, 12);
  std::vector<std::pair<std::size_t, std::size_t>> runs;
  std::vector<std::pair<std::size_t, std::size_t>> short_runs;

  for_each_run(set, block_pages, [&](std::size_t first, std::size_t count) { runs.emplace_back(first, count); });
  for_each_run(set, 4, [&](std::size_t first, std::size_t count) { short_runs.emplace_back(first, count); });

  EXPECT_EQ(runs, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {60, 8}, {500, 12}}));
  EXPECT_EQ(short_runs,
            (std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {60, 4}, {64, 4}, {500, 4}, {504, 4}, {508, 4}}));
  EXPECT_EQ(set.count(), 21U);
  EXPECT_EQ(set.next(1), 60U);
  EXPECT_EQ(set.next(512), 512U);
  EXPECT_EQ(set.next_without(500), 512U);
}

TEST(PagerPages, ASetAgreesWithItsBits) {
  test::Random random(test::seed());
  for (int round = 0; round < 2000; ++round) {
    const std::size_t first = test::between(random, 0, block_pages);
    const std::size_t count = test::between(random, 0, block_pages - first);
    const PageSet set = PageSet::of(first, count);
    ASSERT_EQ(set.count(), count);
    for (std::size_t page = 0; page < block_pages; ++page) {
      ASSERT_EQ(set.has(page), page >= first && page < first + count);
    }
    EXPECT_TRUE((set - set).is_empty());
    EXPECT_TRUE((set | (PageSet::of(0, block_pages) - set)).is_whole());
  }
}

TEST(PagerPages, AllVectorInstructionsComputeTheSameChecksum) {
  const auto page = test::pattern(pager::page_bytes, 3);
  [[maybe_unused]] const pager::Checksum plain = pager::hash_plain(page.data());

#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_EQ(pager::hash_avx2(page.data()), plain);
  }
  if (__builtin_cpu_supports("avx512f")) {
    EXPECT_EQ(pager::hash_avx512(page.data()), plain);
  }
#endif
  EXPECT_FALSE(pager::checksum_of(page.data()).is_of_zeros());
  EXPECT_TRUE(pager::checksum_of(std::vector<std::byte>(pager::page_bytes).data()).is_of_zeros());
}

TEST(PagerPages, ABlockIsHeldByOneThreadAndWantedByOthers) {
  Block block;

  ASSERT_TRUE(block.try_hold());
  EXPECT_FALSE(block.try_hold());
  EXPECT_TRUE(block.let_go().is_empty()) << "no thread wants the block";
  ASSERT_TRUE(block.try_hold_or_want(1000));
  EXPECT_FALSE(block.try_hold_or_want(2000));
  EXPECT_FALSE(block.try_hold_or_want(2500));
  const pager::DroppedFaults dropped = block.let_go();
  EXPECT_FALSE(dropped.is_empty()) << "threads want the block and must be woken";
  EXPECT_EQ(dropped.waited_ns(3000), 1500U);
  EXPECT_TRUE(block.try_hold());
}

TEST(PagerPages, HoldersSeeTheWritesOfThePreviousHolder) {
  Block block;
  std::size_t changes = 0;  // changed only by the thread that holds the block, like its pages
  std::atomic<std::size_t> wakes{0};
  std::atomic<std::size_t> wanted{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < test::rounds(20'000); ++round) {
          if (!block.try_hold_or_want(1)) {
            ++wanted;
            continue;
          }
          ++changes;
          block.here = PageSet::of(0, changes % block_pages);
          if (!block.let_go().is_empty()) ++wakes;
        }
      });
    }
  }
  EXPECT_EQ(changes + wanted, 3 * static_cast<std::size_t>(test::rounds(20'000)));
  EXPECT_EQ(block.here.count(), changes % block_pages);
  EXPECT_LE(wakes, wanted);
}

TEST(PagerPages, ARegionKnowsWhichPagesAreItsOwn) {
  test::MemorySource source(pager::page_bytes);
  const pager::Address start = (1ULL << 40) + 3 * pager::page_bytes;
  pager::Region region(start, pager::block_bytes, source, pager::Contents::zeros);

  EXPECT_EQ(region.blocks(), 2U);
  EXPECT_EQ(region.valid(0), PageSet::of(3, block_pages - 3));
  EXPECT_EQ(region.valid(1), PageSet::of(0, 3));
  EXPECT_EQ(region.place(1, 0), (block_pages - 3) * pager::page_bytes);
  EXPECT_TRUE(region.checksums(1, 2, 1)[0].is_of_zeros());
}

TEST(PagerPages, APoolReturnsTheOldestBufferFirst) {
  Pool pool(1, 4);
  pager::PolicyEntry owner;
  const auto one = pool.take_empty();
  const auto two = pool.take_empty();
  const auto three = pool.take_empty();
  ASSERT_TRUE(one && two && three);
  EXPECT_FALSE(pool.take_empty() || pool.take_prefaulted());

  pool.keep(*two, owner, Pool::Kind::taken_out);
  pool.keep(*one, owner, Pool::Kind::taken_out);
  pool.give_back(*three, true);

  EXPECT_EQ(pool.oldest(Pool::Kind::taken_out)->buffer, *two);
  EXPECT_EQ(pool.oldest(Pool::Kind::taken_out)->buffer, *one) << "the oldest buffer did not move to the end";
  EXPECT_FALSE(pool.oldest(Pool::Kind::ahead));
  EXPECT_EQ(pool.kept(Pool::Kind::taken_out), 2U);
  EXPECT_EQ(pool.take_prefaulted(), three);
}

}  // namespace
}  // namespace tonari
