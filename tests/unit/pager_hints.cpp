#include "../support/pager.hpp"

#include "pager/expected.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <span>
#include <vector>

// Tests of the hints that a program gives about its memory, and of memory that it protects.
namespace tonari {
namespace {

using pager::block_bytes;
using pager::page_bytes;
using pager::Pager;
using test::eventually;
using test::Paged;

constexpr std::size_t mib = 1 << 20;

struct PagerHints : test::NeedsPaging {};

void write_pages(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += page_bytes) bytes[at] = static_cast<std::byte>(at / page_bytes | 1);
}

std::size_t wrong_pages(std::span<const std::byte> bytes) {
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < bytes.size(); at += page_bytes) {
    wrong += bytes[at] != static_cast<std::byte>(at / page_bytes | 1) ? 1 : 0;
  }
  return wrong;
}

// Returns the numbers of the blocks without a resident page.
std::vector<std::size_t> absent_blocks(std::span<std::byte> bytes) {
  std::vector<unsigned char> pages(bytes.size() / page_bytes);
  EXPECT_EQ(::mincore(bytes.data(), bytes.size(), pages.data()), 0);
  std::vector<std::size_t> absent;
  for (std::size_t first = 0; first < pages.size(); first += pager::block_pages) {
    const auto block = std::span(pages).subspan(first, pager::block_pages);
    if (std::ranges::none_of(block, [](unsigned char page) { return (page & 1) != 0; })) {
      absent.push_back(first / pager::block_pages);
    }
  }
  return absent;
}

TEST_F(PagerHints, AnnouncedBlocksAreReadAhead) {
  Paged paged(256 * mib, 64 * mib);
  write_pages(paged.bytes());
  const auto absent = absent_blocks(paged.bytes());  // these depend on the relative speed of writer and movers
  ASSERT_GE(absent.size(), 32U);
  const auto before = paged.pager.statistics().blocks_read_ahead;

  // The stream of writes may have asked for some of them already.
  for (const std::size_t block : std::span(absent).first(32)) {
    paged.pager.will_need(paged.memory.start() + block * block_bytes, block_bytes);
  }

  EXPECT_TRUE(eventually([&] { return paged.pager.statistics().blocks_read_ahead >= before + 1; }));
  EXPECT_EQ(wrong_pages(paged.bytes()), 0U);
}

TEST_F(PagerHints, AnnouncedPagesAreReadWithoutFaults) {
  Paged paged(64 * mib, 4 * mib);
  write_pages(paged.bytes());
  const auto faults = paged.pager.statistics().faults;
  const auto in = paged.pager.statistics().bytes_in;

  paged.pager.will_need(paged.memory.start() + page_bytes, 3 * page_bytes);

  EXPECT_TRUE(eventually([&] { return paged.pager.statistics().bytes_in >= in + 3 * page_bytes; }));
  EXPECT_LE(paged.pager.statistics().faults, faults + 1);  // the last write's fault may be counted late
}

TEST_F(PagerHints, RangesOutsideAnyRegionAreIgnored) {
  Paged paged(8 * mib, 4 * mib);
  for (const pager::Address start : {pager::Address{0}, paged.memory.start() + 64 * mib, ~pager::Address{4095}}) {
    paged.pager.will_need(start, mib);
    paged.pager.done_with(start, mib);
    paged.pager.expect(start, ~std::size_t{0}, Pager::Pattern::random);
    paged.pager.expect(start, ~std::size_t{0}, Pager::Pattern::usual);
  }
  paged.pager.will_need(paged.memory.start() + 7 * mib, 100 * mib);
  paged.pager.done_with(paged.memory.start() + 7 * mib, 100 * mib);
  write_pages(paged.bytes());
  EXPECT_EQ(wrong_pages(paged.bytes()), 0U);
}

TEST_F(PagerHints, NoStreamIsFollowedWhereRandomReadsAreExpected) {
  Paged paged(256 * mib, 64 * mib);
  write_pages(paged.bytes());
  const auto before = paged.pager.statistics();
  paged.pager.expect(paged.memory.start(), paged.bytes().size(), Pager::Pattern::random);

  EXPECT_EQ(wrong_pages(paged.bytes()), 0U);

  const auto after = paged.pager.statistics();
  constexpr std::uint64_t asked_for_before = 8;  // by the stream of writes; with read-ahead it would be 128
  EXPECT_LE(after.blocks_read_ahead, before.blocks_read_ahead + asked_for_before);
  EXPECT_GE(after.faults - before.faults, (paged.bytes().size() - 64 * mib) / page_bytes / 2);
}

TEST_F(PagerHints, PagesThatTheProgramProtectsCanBeRead) {
  Paged paged(64 * mib, 4 * mib);
  write_pages(paged.bytes());
  ASSERT_EQ(::mprotect(paged.bytes().data(), paged.bytes().size(), PROT_READ), 0);

  EXPECT_EQ(wrong_pages(paged.bytes()), 0U);

  ASSERT_EQ(::mprotect(paged.bytes().data(), paged.bytes().size(), PROT_READ | PROT_WRITE), 0);
  write_pages(paged.bytes());
  EXPECT_EQ(wrong_pages(paged.bytes()), 0U);
}

TEST(PagerExpectedRandom, KnowsItsRangesAndForgetsTheOldest) {
  pager::ExpectedRandom random;
  EXPECT_FALSE(random.has(0));
  for (std::size_t i = 0; i <= pager::ExpectedRandom::ranges_max; ++i) random.add(i * 100, i * 100 + 50);

  EXPECT_FALSE(random.has(10));
  EXPECT_TRUE(random.has(110));
  EXPECT_FALSE(random.has(150));
  random.remove(120, 130);
  EXPECT_FALSE(random.has(110));
  EXPECT_TRUE(random.has(pager::ExpectedRandom::ranges_max * 100));
}

}  // namespace
}  // namespace tonari
