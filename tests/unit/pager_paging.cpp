#include "../support/pager.hpp"

#include <tonari/status.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

// Tests of programs whose regions are larger than the memory limit.
namespace tonari {
namespace {

using pager::block_bytes;
using pager::block_pages;
using pager::page_bytes;
using test::Paged;
using test::write_all;
using test::wrong_pages;

constexpr std::size_t mib = 1 << 20;

struct PagerPaging : test::NeedsPaging {};

TEST_F(PagerPaging, KeepsWrittenDataWithinItsLimit) {
  for (const bool lets_look : {true, false}) {
    for (const std::size_t limit : {2 * mib, 40 * mib}) {
      Paged paged(100 * mib, limit, {}, lets_look);

      write_all(paged.bytes(), 1);
      const std::size_t wrong = wrong_pages(paged.bytes(), 1);

      EXPECT_EQ(wrong, 0U);
      const auto statistics = paged.pager.statistics();
      EXPECT_LE(statistics.resident_bytes, limit);
      EXPECT_EQ(statistics.times_over_limit, 0U);
      EXPECT_GE(statistics.bytes_out, paged.bytes().size() - limit);
      EXPECT_TRUE(paged.failures().empty());
    }
  }
}

TEST_F(PagerPaging, UntouchedMemoryIsZeroAndNeverSent) {
  Paged paged(64 * mib, 4 * mib);

  for (const std::byte& each : paged.bytes()) ASSERT_EQ(each, std::byte{0});

  EXPECT_EQ(paged.pager.statistics().bytes_out, 0U);
  EXPECT_EQ(paged.pager.statistics().bytes_in, 0U);
}

TEST_F(PagerPaging, PagesThatAreOnlyReadAreNeverSent) {
  Paged paged(64 * mib, 4 * mib, {}, true, pager::Contents::at_source);
  write_all(paged.source.bytes(), 1);

  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);

  EXPECT_EQ(paged.source.stored, 0U);
}

TEST_F(PagerPaging, CleanPagesAreEvictedWithoutBeingSentAgain) {
  constexpr std::size_t size = 64 * mib;
  Paged paged(size, 4 * mib);
  write_all(paged.bytes(), 1);

  for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);

  // A page that is evicted while it is being written is sent twice. The policy decides which pages are evicted, and
  // when.
  EXPECT_LT(paged.source.stored, 2 * size);
}

TEST_F(PagerPaging, ARegionMayBeginAtAnyPageWithTheContentsOfItsSource) {
  const std::size_t size = 8 * mib + 3 * page_bytes;
  Paged paged(size, 2 * mib, {}, true, pager::Contents::at_source, 5 * page_bytes);
  write_all(paged.source.bytes(), 7);

  EXPECT_EQ(wrong_pages(paged.bytes(), 7), 0U);
  write_all(paged.bytes(), 8);

  EXPECT_EQ(wrong_pages(paged.bytes(), 8), 0U);
}

TEST_F(PagerPaging, DiscardedPagesAreZero) {
  Paged paged(16 * mib, 4 * mib);
  write_all(paged.bytes(), 1);
  const std::size_t first = 3 * mib + 5 * page_bytes;
  const std::size_t size = 6 * mib;

  EXPECT_EQ(paged.pager.discard(paged.memory.start() + first, size), Status::ok);

  for (const std::byte& each : paged.bytes().subspan(first, size)) ASSERT_EQ(each, std::byte{0});
  for (std::size_t at = 0; at < paged.bytes().size(); at += page_bytes) {
    if (at >= first && at < first + size) continue;
    const auto page = test::pattern(page_bytes, 1 + at);
    ASSERT_EQ(std::memcmp(paged.bytes().data() + at, page.data(), page_bytes), 0) << at;
  }
  EXPECT_EQ(paged.pager.discard(paged.memory.start() + 1, page_bytes), Status::invalid);
  EXPECT_EQ(paged.pager.discard(paged.memory.start(), 17 * mib), Status::bounds);
}

TEST_F(PagerPaging, MemoryDroppedWithoutThePagerIsZeroOrIntact) {
  Paged paged(16 * mib, 2 * mib);
  write_all(paged.bytes(), 1);
  const auto some = paged.bytes().last(mib);  // contains the resident pages

  ASSERT_EQ(::madvise(some.data(), some.size(), MADV_DONTNEED), 0);
  for (std::size_t at = 0; at < some.size(); at += page_bytes) {
    const auto page = test::pattern(page_bytes, 1 + 15 * mib + at);
    const bool is_zero = some[at + 100] == std::byte{0} && some[at + 101] == std::byte{0};
    EXPECT_TRUE(is_zero || std::memcmp(some.data() + at, page.data(), page_bytes) == 0);
  }
  write_all(paged.bytes(), 2);

  EXPECT_EQ(wrong_pages(paged.bytes(), 2), 0U);
}

TEST_F(PagerPaging, SystemCallsReachAbsentPages) {
  Paged paged(16 * mib, 2 * mib);
  if (paged.space.faults().reach() != pager::Reach::everything)
    GTEST_SKIP() << "the kernel reports only faults of user mode";
  write_all(paged.bytes(), 1);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  const int number = ::fileno(file);

  std::size_t done = 0;
  while (done < paged.bytes().size()) {
    const ssize_t more = ::write(number, paged.bytes().data() + done, paged.bytes().size() - done);
    ASSERT_GT(more, 0);
    done += static_cast<std::size_t>(more);
  }
  std::ranges::fill(paged.bytes(), std::byte{9});
  for (done = 0; done < paged.bytes().size();) {
    const ssize_t more =
        ::pread(number, paged.bytes().data() + done, paged.bytes().size() - done, static_cast<off_t>(done));
    ASSERT_GT(more, 0);
    done += static_cast<std::size_t>(more);
  }

  EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);
  std::fclose(file);
}

TEST_F(PagerPaging, RemovingARegionLeavesNoThreadStuck) {
  for (int round = 0; round < test::rounds(5); ++round) {
    Paged paged(16 * mib, 2 * mib);
    write_all(paged.bytes(), 1);
    const std::uint64_t faults_before = paged.pager.statistics().faults;
    std::atomic<bool> stop{false};
    std::array<std::atomic<int>, 3> writes{};
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < writes.size(); ++i) {
      threads.emplace_back([&, i] {
        test::Random random(test::seed() + i);
        while (!stop) {
          const std::size_t at = test::between(random, 0, paged.bytes().size() - 1);
          reinterpret_cast<volatile char*>(paged.bytes().data())[at] = 1;
          ++writes[i];
        }
      });
    }
    // Seven of eight pages are away, so from then on nearly every write of each thread is a fault.
    for (const auto& each : writes) {
      while (each < 20) std::this_thread::yield();
    }
    EXPECT_GT(paged.pager.statistics().faults, faults_before);

    EXPECT_EQ(paged.pager.remove(paged.memory.start()), Status::ok);

    stop = true;
    threads.clear();  // all threads can be joined
    EXPECT_EQ(paged.pager.statistics().resident_bytes, 0U);
    EXPECT_EQ(paged.pager.remove(paged.memory.start()), Status::invalid);
  }
}

// Three threads add a region of `bytes`, call use(memory, thread) and remove it, `rounds` times.
template <class Use>
void let_regions_come_and_go(std::size_t limit, std::size_t bytes, int rounds, Use use) {
  pager::OwnSpace space(pager::buffers_for(limit));
  pager::Pager pager(space, {.limit_bytes = limit});
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < rounds; ++round) {
        test::MemorySource source(bytes);
        const test::RegionMemory memory(bytes);
        pager.add(memory.start(), bytes, source);
        use(memory.bytes(), i);
        EXPECT_EQ(pager.remove(memory.start()), Status::ok);
      }
    });
  }
  threads.clear();

  EXPECT_EQ(pager.statistics().resident_bytes, 0U);
}

TEST_F(PagerPaging, RegionsComeAndGoWhileOthersAreUsed) {
  let_regions_come_and_go(3 * mib, 4 * mib, test::rounds(8), [](std::span<std::byte> memory, unsigned thread) {
    write_all(memory, thread);
    EXPECT_EQ(wrong_pages(memory, thread), 0U);
  });
}

// Removing a region and evicting one of its blocks once gave the same buffer back twice, so that two blocks shared it.
// At most a fifth of each block is used, so that rounds are short and many evictions meet a removal.
TEST_F(PagerPaging, RegionsGoWhileTheirBlocksAreEvicted) {
  constexpr std::size_t bytes = 4 * block_bytes;
  std::array<test::Random, 3> randoms{test::Random(test::seed()), test::Random(test::seed() + 1),
                                      test::Random(test::seed() + 2)};
  let_regions_come_and_go(mib, bytes, test::rounds(150), [&](std::span<std::byte> memory, unsigned thread) {
    const std::size_t piece = test::between(randoms[thread], 1, block_pages / 5) * page_bytes;
    for (std::size_t at = 0; at < bytes; at += block_bytes) write_all(memory.subspan(at, piece), thread + at);
    for (std::size_t at = 0; at < bytes; at += block_bytes) {
      EXPECT_EQ(wrong_pages(memory.subspan(at, piece), thread + at), 0U);
    }
  });
}

TEST_F(PagerPaging, StreamsAreReadAheadInBlocks) {
  Paged paged(256 * mib, 64 * mib);
  write_all(paged.bytes(), 1);

  EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);

  const auto statistics = paged.pager.statistics();
  EXPECT_GT(statistics.blocks_read_ahead, 100U);
  EXPECT_GT(statistics.read_ahead_hits, 100U);
  EXPECT_LT(statistics.faults, 2000U);
}

// Reads from the first block on until blocks behind the last one have been read ahead, and returns that one's index
// + 1. The movers may be late, so that a stream must go on for longer or start again.
std::size_t read_until_ahead(Paged& paged, std::size_t blocks) {
  const auto ahead = [&] {
    const auto statistics = paged.pager.statistics();
    return statistics.blocks_read_ahead - statistics.read_ahead_hits;
  };
  const std::uint64_t before = ahead();
  for (int round = 0; round < 20; ++round) {
    for (std::size_t block = 0; block < blocks; ++block) {
      EXPECT_EQ(wrong_pages(paged.bytes().subspan(block * block_bytes, block_bytes), 1 + block * block_bytes), 0U);
      if (block + 1 >= blocks / 2 && ahead() > before) return block + 1;
    }
  }
  ADD_FAILURE() << "no block was read ahead";
  return 0;
}

TEST_F(PagerPaging, PagesReadAheadForAnEndedStreamAreEvicted) {
  Paged paged(192 * mib, 40 * mib);
  write_all(paged.bytes(), 1);
  const auto page_at = [&](std::size_t block, std::size_t page) {
    return wrong_pages(paged.bytes().subspan(block * block_bytes + page * page_bytes, page_bytes),
                       1 + block * block_bytes + page * page_bytes);
  };
  const std::size_t end = read_until_ahead(paged, 24);

  test::Random random(test::seed());
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(page_at(test::between(random, 32, 95), test::between(random, 0, pager::block_pages - 1)), 0U);
  }
  EXPECT_GE(paged.pager.statistics().bytes_in_vain, block_bytes);
  const std::uint64_t hits = paged.pager.statistics().read_ahead_hits;
  for (std::size_t block = end; block < end + 8; ++block) EXPECT_EQ(page_at(block, 3), 0U);

  EXPECT_EQ(paged.pager.statistics().read_ahead_hits, hits);
}

bool falls_to(const pager::Pager& pager, std::size_t bytes) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (pager.statistics().resident_bytes > bytes && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return pager.statistics().resident_bytes <= bytes;
}

TEST_F(PagerPaging, AStreamFetchesTheRestOfAPartlyResidentBlockAtOnce) {
  Paged paged(256 * mib, 64 * mib);
  write_all(paged.bytes(), 1);
  const std::span blocks = paged.bytes().subspan(64 * block_bytes, 4 * block_bytes);  // written early, but not first
  for (std::size_t at = 300 * page_bytes; at < blocks.size(); at += block_bytes) {
    ASSERT_EQ(wrong_pages(blocks.subspan(at, page_bytes), 1 + 64 * block_bytes + at), 0U);
  }

  const auto before = paged.pager.statistics().faults;
  EXPECT_EQ(wrong_pages(blocks, 1 + 64 * block_bytes), 0U);

  EXPECT_LE(paged.pager.statistics().faults - before, 32U)
      << "fetched in slices, each single block would take as many faults";
  EXPECT_TRUE(paged.failures().empty());
}

// Before a whole block comes, the kernel is told to drop all that is there.
TEST_F(PagerPaging, AForeignMappingInsideAHiddenBlockStays) {
  Paged paged(96 * mib, 40 * mib);
  const auto all = paged.bytes();
  const std::size_t at = 30 * block_bytes + 100 * page_bytes;
  const auto mapped = all.subspan(at, 10 * page_bytes);
  const auto after = all.subspan(at + mapped.size());
  write_all(all.first(28 * block_bytes), 1);  // a stream: the next blocks are read ahead

  ASSERT_EQ(paged.pager.hide(reinterpret_cast<pager::Address>(mapped.data()), mapped.size()), Status::ok);
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  ASSERT_EQ(::mmap(mapped.data(), mapped.size(), PROT_READ | PROT_WRITE, flags, -1, 0), mapped.data());
  write_all(mapped, 2);
  write_all(all.subspan(28 * block_bytes, 2 * block_bytes + 100 * page_bytes), 1);
  write_all(after, 3);

  EXPECT_EQ(wrong_pages(mapped, 2), 0U);
  EXPECT_EQ(wrong_pages(after, 3), 0U);
}

TEST_F(PagerPaging, TheLimitMayChangeWhileThreadsWork) {
  Paged paged(96 * mib, 64 * mib);
  write_all(paged.bytes(), 1);
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const auto part = paged.bytes().subspan(i * 32 * mib, 32 * mib);
      for (std::uint64_t round = 2; !stop; ++round) {
        write_all(part, round);
        EXPECT_EQ(wrong_pages(part, round), 0U);
      }
      write_all(part, 1 + i * 32 * mib);
    });
  }

  for (const std::size_t limit : {2 * mib, 48 * mib, 1 * mib, 5 * mib}) {
    paged.pager.set_limit(limit);
    EXPECT_TRUE(falls_to(paged.pager, limit)) << limit;
  }
  paged.pager.set_limit(64 * mib);

  stop = true;
  threads.clear();
  EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);
  EXPECT_GT(paged.pager.statistics().resident_bytes, 48 * mib) << "the memory above the old limit is not used";
  EXPECT_TRUE(paged.failures().empty());
}

TEST_F(PagerPaging, ALoweredLimitHoldsWithMoversAndWithout) {
  for (const unsigned movers : {1U, 0U}) {
    Paged paged(96 * mib, 64 * mib, {.limit_bytes = 0, .movers = movers});
    write_all(paged.bytes(), 1);
    const auto before = paged.pager.statistics();

    paged.pager.set_limit(0);

    EXPECT_EQ(movers == 0 ? wrong_pages(paged.bytes(), 1) : 0, 0U);
    EXPECT_TRUE(falls_to(paged.pager, pager::Options::limit_bytes_min));
    EXPECT_TRUE(movers == 0 || paged.pager.statistics().faults <= before.faults + 1)
        << "more faults than the one that may be counted late";
    EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);
  }
}

TEST_F(PagerPaging, BlocksAreReadAheadOnlyIfTheLimitHasRoomForThem) {
  Paged paged(128 * mib, 64 * mib);
  write_all(paged.bytes(), 1);
  paged.pager.set_limit(8 * mib);
  EXPECT_TRUE(falls_to(paged.pager, 8 * mib));
  const auto before = paged.pager.statistics();

  EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);
  const auto narrow = paged.pager.statistics();
  paged.pager.set_limit(64 * mib);
  EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);

  EXPECT_EQ(narrow.blocks_read_ahead, before.blocks_read_ahead);
  EXPECT_GT(paged.pager.statistics().blocks_read_ahead, narrow.blocks_read_ahead);
}

TEST_F(PagerPaging, StreamsAreReadByPagesWhileScatteredFaultsPrevail) {
  Paged paged(128 * mib, 64 * mib);
  write_all(paged.bytes(), 1);
  const auto blocks_of_a_stream = [&](std::size_t bytes) {
    paged.pager.set_limit(mib);  // so that no block is here in part
    EXPECT_TRUE(falls_to(paged.pager, mib));
    paged.pager.set_limit(64 * mib);
    const std::uint64_t before = paged.pager.statistics().blocks_read_ahead;
    EXPECT_EQ(wrong_pages(paged.bytes().first(bytes), 1), 0U);
    return paged.pager.statistics().blocks_read_ahead - before;
  };
  EXPECT_GT(blocks_of_a_stream(16 * mib), 0U);

  test::Random random(test::seed());
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t at = test::between(random, 0, paged.bytes().size() / page_bytes - 1) * page_bytes;
    ASSERT_EQ(paged.bytes()[at], test::pattern(1, 1 + at)[0]);
  }
  EXPECT_EQ(blocks_of_a_stream(16 * mib), 0U);

  EXPECT_EQ(wrong_pages(paged.bytes(), 1), 0U);
  EXPECT_GT(blocks_of_a_stream(64 * mib), 0U) << "streams prevail again";
}

// Returns the number of resident pages of this process.
std::size_t pages_in_use() {
  std::size_t all = 0;
  std::size_t used = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  EXPECT_EQ(std::fscanf(file, "%zu %zu", &all, &used), 2);
  std::fclose(file);
  return used;
}

TEST_F(PagerPaging, ARegionOfATerabyteCostsOnlyItsTouchedPages) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs shadow memory for the whole region";
#endif
  constexpr std::size_t size = 1ULL << 40;
  const std::size_t before = pages_in_use();
  Paged paged(size, 4 * mib);

  for (std::size_t at = 0; at < size; at += size / 64) paged.bytes()[at] = std::byte{7};

  EXPECT_EQ(paged.pager.statistics().touched_bytes, 64 * page_bytes);
  EXPECT_LT(pages_in_use() - before, 20 * mib / page_bytes);
  for (std::size_t at = 0; at < size; at += size / 64) ASSERT_EQ(paged.bytes()[at], std::byte{7});
  EXPECT_EQ(paged.pager.discard(paged.memory.start(), size), Status::ok);
  EXPECT_EQ(paged.pager.statistics().touched_bytes, 0U);
  EXPECT_LT(pages_in_use() - before, 20 * mib / page_bytes);
  for (std::size_t at = 0; at < size; at += size / 64) ASSERT_EQ(paged.bytes()[at], std::byte{0});
  EXPECT_EQ(paged.pager.remove(paged.memory.start()), Status::ok);
  EXPECT_EQ(paged.pager.statistics().touched_bytes, 0U);
}

TEST_F(PagerPaging, TouchedPagesCountUntilTheyAreDiscarded) {
  Paged paged(16 * mib, 40 * mib);  // a block that left while it was written would count some of its pages late
  const auto touched = [&] { return paged.pager.statistics().touched_bytes; };
  EXPECT_EQ(touched(), 0U);

  write_all(paged.bytes(), 1);
  // A block that was read ahead wakes its thread as it is moved in, and is counted afterwards.
  EXPECT_TRUE(test::eventually([&] { return touched() == 16 * mib; }));

  EXPECT_EQ(paged.pager.discard(paged.memory.start() + mib, 4 * mib), Status::ok);
  EXPECT_EQ(touched(), 12 * mib);
  EXPECT_EQ(paged.pager.discard(paged.memory.start() + 5 * mib, mib), Status::ok);
  EXPECT_EQ(touched(), 11 * mib);
  EXPECT_EQ(paged.pager.remove(paged.memory.start()), Status::ok);
  EXPECT_EQ(touched(), 0U);
}

TEST_F(PagerPaging, DiscardingDropsOnlyResidentPages) {
  struct CountingSpace : pager::OwnSpace {
    using OwnSpace::OwnSpace;
    void drop(pager::Address start, std::size_t bytes) noexcept override {
      ++drops;
      OwnSpace::drop(start, bytes);
    }
    int drops = 0;
  };
  constexpr std::size_t size = 256 * mib;
  test::MemorySource source(size);
  const test::RegionMemory memory(size);
  CountingSpace space(pager::buffers_for(2 * mib));
  pager::Pager pager(space, {.limit_bytes = 2 * mib});
  pager.add(memory.start(), size, source);
  write_all(memory.bytes().first(64 * mib), 1);

  EXPECT_EQ(pager.discard(memory.start(), size), Status::ok);

  EXPECT_LT(space.drops, 16);  // of 128 blocks; on a busy machine parts of several blocks are resident
  for (std::size_t at = 0; at < size; at += page_bytes) ASSERT_EQ(memory.bytes()[at + 9], std::byte{0});
}

TEST_F(PagerPaging, RefusesInvalidRegionsAndLimits) {
  Paged paged(4 * mib, 2 * mib);
  const test::RegionMemory other(mib);

  EXPECT_THROW(paged.pager.add(other.start() + 1, mib, paged.source), SetupError);
  EXPECT_THROW(paged.pager.add(paged.memory.start() + mib, mib, paged.source), SetupError);
  EXPECT_THROW(pager::Pager(paged.space, {.limit_bytes = 1000}), SetupError);
}

}  // namespace
}  // namespace tonari
