#include "../support/pager.hpp"

#include "base/clock.hpp"

#include <tonari/status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

// Tests of the pager's statistics about waiting threads and about pages that were fetched in vain.
namespace tonari {
namespace {

using pager::block_bytes;
using pager::page_bytes;
using test::eventually;
using test::Paged;

constexpr std::size_t mib = 1 << 20;

struct PagerStatistics : test::NeedsPaging {};

void spend(std::uint64_t ns) {
  const std::uint64_t start = monotonic_ns();
  while (monotonic_ns() - start < ns) std::this_thread::yield();
}

void touch(const std::byte& byte) { (void)*static_cast<const volatile std::byte*>(&byte); }

// A source that needs some time for each fetch, and does not return from one while its gate is closed.
class SlowSource : public test::MemorySource {
 public:
  explicit SlowSource(std::size_t size) : MemorySource(size, false) {}
  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override {
    spend(ns);
    while (is_closed) {
      is_asked = true;
      std::this_thread::yield();
    }
    return MemorySource::fetch(place, into);
  }

  std::atomic<std::uint64_t> ns{0};
  std::atomic<bool> is_closed{false};
  std::atomic<bool> is_asked{false};
};

struct SlowlyPaged {
  SlowlyPaged() { pager.add(memory.start(), size, source, pager::Contents::at_source); }

  static constexpr std::size_t size = 64 * mib;
  static constexpr std::size_t limit = 40 * mib;
  SlowSource source{size};
  test::RegionMemory memory{size};
  pager::OwnSpace space{pager::buffers_for(limit)};
  pager::Pager pager{space, {.limit_bytes = limit}};
};

TEST_F(PagerStatistics, TheWaitOfThreadsContainsTheTimeOfTheSource) {
  SlowlyPaged paged;
  paged.pager.expect(paged.memory.start(), SlowlyPaged::size, pager::Pager::Pattern::random);
  constexpr std::uint64_t fetch_ns = 2'000'000;
  paged.source.ns = fetch_ns;
  constexpr std::size_t reads = 20;

  const std::uint64_t start = monotonic_ns();
  for (std::size_t i = 0; i < reads; ++i) touch(paged.memory.bytes()[i * block_bytes]);
  const std::uint64_t took_ns = monotonic_ns() - start;

  EXPECT_TRUE(eventually([&] { return paged.pager.statistics().wait_ns >= reads * fetch_ns; }));
  EXPECT_LE(paged.pager.statistics().wait_ns, took_ns + 2 * fetch_ns) << "the end of the last fault is seen late";
  std::uint64_t counted = 0;
  EXPECT_TRUE(eventually([&] {
    counted = 0;
    for (const std::uint64_t each : paged.pager.statistics().wait_ns_histogram) counted += each;
    return counted == reads;
  })) << counted;
}

TEST_F(PagerStatistics, TheWaitForABlockThatAnotherThreadHoldsIsCounted) {
  SlowlyPaged paged;
  paged.source.is_closed = true;
  paged.pager.will_need(paged.memory.start(), block_bytes);
  ASSERT_TRUE(eventually([&] { return paged.source.is_asked.load(); })) << "no mover holds the block";
  std::jthread reader([&] { touch(paged.memory.bytes()[5 * page_bytes]); });
  ASSERT_TRUE(eventually([&] { return paged.pager.statistics().faults_met_held == 1; }));
  EXPECT_EQ(paged.pager.statistics().wait_ns, 0U);

  constexpr std::uint64_t more_ns = 3'000'000;
  spend(more_ns);
  paged.source.is_closed = false;
  reader.join();

  EXPECT_TRUE(eventually([&] { return paged.pager.statistics().wait_ns >= more_ns; }));
}

TEST_F(PagerStatistics, BlocksThatWereReadAheadAreFetchedInVainIfNoFaultWantedThem) {
  Paged paged(64 * mib, 40 * mib, {}, true, pager::Contents::at_source);
  test::write_all(paged.source.bytes(), 1);
  const auto read_ahead = [&](std::size_t block) {
    const std::uint64_t before = paged.pager.statistics().blocks_read_ahead;
    paged.pager.will_need(paged.memory.start() + block * block_bytes, block_bytes);
    return eventually([&] { return paged.pager.statistics().blocks_read_ahead > before; });
  };
  const auto discard = [&](std::size_t block) {
    return paged.pager.discard(paged.memory.start() + block * block_bytes, block_bytes);
  };

  ASSERT_TRUE(read_ahead(3));
  EXPECT_EQ(paged.bytes()[3 * block_bytes], test::pattern(page_bytes, 1 + 3 * block_bytes)[0]);
  EXPECT_EQ(discard(3), Status::ok);
  EXPECT_EQ(paged.pager.statistics().bytes_in_vain, 0U);

  ASSERT_TRUE(read_ahead(9));
  EXPECT_EQ(discard(9), Status::ok);
  EXPECT_EQ(paged.pager.statistics().bytes_in_vain, block_bytes);

  EXPECT_EQ(discard(20), Status::ok);
  ASSERT_TRUE(read_ahead(20));
  EXPECT_EQ(discard(20), Status::ok);
  EXPECT_EQ(paged.pager.statistics().bytes_in_vain, block_bytes) << "zeros are not fetched";
}

// Makes nearly all pages leave, and lets them come back.
void evict(Paged& paged, std::size_t limit_before) {
  paged.pager.set_limit(mib);
  ASSERT_TRUE(eventually([&] { return paged.pager.statistics().resident_bytes <= mib; }));
  paged.pager.set_limit(limit_before);
}

constexpr std::size_t limit = 40 * mib;

TEST_F(PagerStatistics, OnlyTheTouchedPagesOfASparseMappingCount) {
  Paged paged(512 * mib, limit);
  constexpr std::size_t step = 64 << 10;
  constexpr std::size_t count = 512 * mib / step;

  for (std::size_t i = 0; i < count; ++i) paged.bytes()[i * step] = std::byte{1};

  EXPECT_EQ(paged.pager.statistics().touched_bytes, count * page_bytes);
}

TEST_F(PagerStatistics, ABlockThatComesBackWholeCountsOnlyItsPagesWithData) {
  Paged paged(128 * mib, limit);
  constexpr std::size_t step = 64 << 10;
  constexpr std::size_t blocks = 64;
  for (std::size_t i = 0; i < blocks * block_bytes / step; ++i) paged.bytes()[i * step] = std::byte{1};
  const std::uint64_t touched = paged.pager.statistics().touched_bytes;
  EXPECT_EQ(touched, blocks * block_bytes / step * page_bytes);
  evict(paged, limit);

  std::size_t came_whole = 0;
  for (std::size_t block = 0; block < blocks && came_whole < 8; ++block) {
    const std::uint64_t before = paged.pager.statistics().blocks_read_ahead;
    const std::uint64_t in = paged.pager.statistics().bytes_in;
    paged.pager.will_need(paged.memory.start() + block * block_bytes, block_bytes);
    // A block of which a page has stayed is not read ahead, or only the rest of it.
    if (!eventually([&] { return paged.pager.statistics().bytes_in > in; })) break;
    EXPECT_EQ(paged.bytes()[block * block_bytes + step], std::byte{1});
    came_whole += paged.pager.statistics().blocks_read_ahead - before;
  }

  EXPECT_EQ(came_whole, 8U);
  EXPECT_GE(paged.pager.statistics().resident_bytes, 8 * block_bytes);
  EXPECT_EQ(paged.pager.statistics().touched_bytes, touched);
}

TEST_F(PagerStatistics, PagesThatAStreamBroughtAlongDoNotCountOnceTheyLeaveUntouched) {
  Paged paged(128 * mib, limit);
  constexpr std::size_t written = 41 * mib;  // ends in the middle of a block

  test::write_all(paged.bytes().first(written), 1);

  // A block that left while it was written, and came back, counts some of its pages only when it leaves again.
  EXPECT_GE(paged.pager.statistics().touched_bytes + 4 * block_bytes, written);
  EXPECT_LE(paged.pager.statistics().touched_bytes, written + 8 * block_bytes);
  evict(paged, limit);
  EXPECT_TRUE(eventually([&] { return paged.pager.statistics().touched_bytes == written; }))
      << paged.pager.statistics().touched_bytes;
}

TEST_F(PagerStatistics, PagesThatComeAgainAreCountedUntilTheCountBeginsAnew) {
  Paged paged(64 * mib, 4 * mib, {}, true, pager::Contents::at_source);
  test::write_all(paged.source.bytes(), 1);
  paged.pager.expect(paged.memory.start(), 64 * mib, pager::Pager::Pattern::random);
  const auto read_all = [&] {
    for (std::size_t at = 0; at < 64 * mib; at += page_bytes) touch(paged.bytes()[at]);
  };

  // A page may leave before the thread that waited for it has read it, and then comes twice.
  constexpr std::size_t few = mib;

  read_all();
  // The thread may run on before its page is counted.
  EXPECT_TRUE(eventually([&] { return paged.pager.statistics().bytes_in >= 64 * mib; }));
  EXPECT_LE(paged.pager.statistics().bytes_in_again, few);
  read_all();
  EXPECT_TRUE(eventually([&] { return paged.pager.statistics().bytes_in_again >= 59 * mib; }));

  const std::uint64_t bytes_in = paged.pager.statistics().bytes_in;
  const std::uint64_t again = paged.pager.statistics().bytes_in_again;
  paged.pager.count_anew();
  read_all();
  EXPECT_TRUE(eventually([&] { return paged.pager.statistics().bytes_in >= bytes_in + 59 * mib; }));
  EXPECT_LE(paged.pager.statistics().bytes_in_again, again + few);
}

TEST(PagerPace, CountsOnlyShortRunsOfAThread) {
  pager::Pace pace;
  EXPECT_EQ(pace.wants_page(7, 1000), 0U) << "it has got no page before";

  pace.got_page(7, 2'000);
  pace.got_page(8, 3'000);
  EXPECT_EQ(pace.wants_page(7, 22'000), 20'000U);
  EXPECT_EQ(pace.wants_page(7, 23'000), 0U) << "the fault is repeated";
  EXPECT_EQ(pace.wants_page(8, 3'000 + pager::Pace::run_ns_max + 1), 0U);
}

}  // namespace
}  // namespace tonari
