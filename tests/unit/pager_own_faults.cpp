#include "pager/fault_mix.hpp"
#include "pager/own_faults.hpp"

#include "../support/pager.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <latch>

// Tests of faults that their own threads serve: the parts first, then a pager of this process.
namespace tonari {
namespace {

using pager::Answer;
using pager::block_bytes;
using pager::block_pages;
using pager::Checksum;
using pager::page_bytes;
using pager::PageSet;
using pager::PassedFaults;
using pager::RecentFaults;

// ---- Which faults continue a stream ----

TEST(RecentFaults, LeadToThePageBehindThePagesThatAreHere) {
  RecentFaults recent;
  recent.add(10 * block_pages + 4);
  const PageSet here = PageSet::of(4, 8);  // 4 to 11
  EXPECT_TRUE(recent.lead_to(10 * block_pages + 12, here));
  EXPECT_FALSE(recent.lead_to(10 * block_pages + 13, here));
  EXPECT_FALSE(recent.lead_to(10 * block_pages + 3, PageSet{}));
  EXPECT_FALSE(recent.lead_to(10 * block_pages + 4, here)) << "the same page again";
}

TEST(RecentFaults, LeadBackwards) {
  RecentFaults recent;
  recent.add(5 * block_pages + 100);
  EXPECT_TRUE(recent.lead_to(5 * block_pages + 99, PageSet::of(100, 1)));
  EXPECT_TRUE(recent.lead_to(5 * block_pages + 92, PageSet::of(93, 8)));
  EXPECT_FALSE(recent.lead_to(5 * block_pages + 91, PageSet::of(93, 8)));
}

TEST(RecentFaults, LeadIntoTheNextBlockAtItsBorderOnly) {
  RecentFaults recent;
  recent.add(7 * block_pages + block_pages - 1);
  EXPECT_TRUE(recent.lead_to(8 * block_pages, PageSet{}));
  EXPECT_FALSE(recent.lead_to(8 * block_pages + 1, PageSet::of(0, 1)));
  RecentFaults back;
  back.add(8 * block_pages);
  EXPECT_TRUE(back.lead_to(7 * block_pages + block_pages - 1, PageSet{}));
  EXPECT_FALSE(back.lead_to(9 * block_pages + 3, PageSet{}));
}

TEST(RecentFaults, AreForgottenAfterEightOthers) {
  RecentFaults recent;
  recent.add(1000 * block_pages);
  for (std::uint64_t i = 1; i <= 8; ++i) recent.add(i * 10 * block_pages);
  EXPECT_FALSE(recent.lead_to(1000 * block_pages + 1, PageSet::of(0, 1)));
}

// ---- Faults that are passed on ----

TEST(PassedFaults, ComeOnceEach) {
  PassedFaults passed;
  std::array<PassedFaults::Fault, PassedFaults::faults_max> read;
  EXPECT_EQ(passed.take(read), 0U);
  passed.add({4096, 7}, [] { FAIL() << "there is room"; });
  passed.add({8192, 8}, [] { FAIL() << "there is room"; });
  EXPECT_FALSE(passed.is_empty());
  ASSERT_EQ(passed.take(read), 2U);
  EXPECT_EQ(read[0].address + read[1].address, 4096U + 8192U);
  EXPECT_EQ(passed.take(read), 0U);
}

TEST(PassedFaults, AllArriveFromManyThreadsThoughThereIsLittleRoom) {
  constexpr std::uint32_t threads = 6;
  const std::size_t each_adds = 2000 * static_cast<std::size_t>(test::rounds(1));
  PassedFaults passed;
  std::vector<std::size_t> seen(threads);
  {
    std::vector<std::jthread> adders;
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      adders.emplace_back([&passed, thread, each_adds] {
        for (std::size_t i = 0; i < each_adds; ++i) passed.add({i, thread}, [] { std::this_thread::yield(); });
      });
    }
    std::array<PassedFaults::Fault, PassedFaults::faults_max> read;
    for (std::size_t all = 0; all < threads * each_adds;) {
      const std::size_t count = passed.take(read);
      for (std::size_t i = 0; i < count; ++i) ++seen[read[i].thread];
      all += count;
      if (count == 0) std::this_thread::yield();
    }
  }
  for (const std::size_t each : seen) EXPECT_EQ(each, each_adds);
}

// ---- What a thread can place itself ----

struct Placement : testing::Test {
  struct System {
    Answer answer = Answer::ok;
    std::size_t bytes_max;
    std::size_t mapping_bytes;
    int* copies;
    int* zeros;
    pager::Progress copy(pager::Address /*to*/, const std::byte* /*from*/, std::size_t bytes) const {
      ++*copies;
      if (bytes > mapping_bytes) return {0, Answer::gone};
      return {answer == Answer::ok ? std::min(bytes, bytes_max) : 0, answer};
    }
    Answer zero(pager::Address /*to*/) const { return ++*zeros, answer; }
  };

  Placement()
      : memory(Mapping::of_sparse_zeros(pager::RegionTables::bytes_for(start, block_bytes), "tables")),
        tables(start, block_bytes, memory.bytes().data()),
        bytes(test::pattern(block_bytes, 3)) {
    tally.set_limit(100);
    block().here = PageSet::of(0, 1);
    block().stored_at = 1;
    know(page, 1);
  }
  /// Gives pages the checksums of their bytes at the source.
  void know(std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      tables.checksum_at(start + i * page_bytes) = pager::checksum_of(bytes.data() + i * page_bytes);
    }
  }
  [[nodiscard]] pager::Block& block() const { return tables.block_at(start); }
  bool place(Answer answer = Answer::ok, std::size_t pages_max = block_pages, std::size_t mapping_pages = block_pages) {
    const System system{answer, pages_max * page_bytes, mapping_pages * page_bytes, &copies, &zeros};
    return pager::OwnFaults<System>(system, bytes.data(), tally, passed).place(tables, at + 123);
  }

  static constexpr pager::Address start = 3 * block_bytes;
  static constexpr std::size_t page = 9;
  static constexpr pager::Address at = start + page * page_bytes;
  Mapping memory;
  pager::RegionTables tables;
  std::vector<std::byte> bytes;
  pager::Tally tally;
  PassedFaults passed;
  int copies = 0;
  int zeros = 0;
};

TEST_F(Placement, CopiesAPageWhoseBytesAreMapped) {
  EXPECT_TRUE(place());
  EXPECT_EQ(copies, 1);
  EXPECT_TRUE(block().here.has(page));
  EXPECT_EQ(tally.resident(), 1U);
  EXPECT_EQ(tally.touched(), 1U);
  EXPECT_EQ(tally.counters.pages_in.load(), 1U);
}

TEST_F(Placement, PlacesZerosWithoutBytes) {
  tables.checksum_at(at) = Checksum{};
  block().stored_at = 0;
  EXPECT_TRUE(place());
  EXPECT_EQ(zeros, 1);
  EXPECT_EQ(copies, 0);
  EXPECT_EQ(tally.counters.pages_in.load(), 0U);
}

TEST_F(Placement, LeavesToThePagerWhatItMustKnow) {
  block().here = {};
  EXPECT_FALSE(place()) << "the first page of a block";
  block().here = PageSet::of(page, 1);
  EXPECT_FALSE(place()) << "a page that should be here";
  block().here = PageSet::of(0, 1);
  block().lost = PageSet::of(page, 1);
  EXPECT_FALSE(place()) << "a page that is lost";
  block().lost = {};
  block().beside = PageSet::of(page, 1);
  EXPECT_FALSE(place()) << "a page in the victim buffer";
  block().beside = {};
  tally.add_resident(100);
  EXPECT_FALSE(place()) << "at the limit";
  tally.remove_resident(100);
  EXPECT_EQ(copies, 0);
  EXPECT_TRUE(place());
}

TEST_F(Placement, LeavesErrorsToThePager) {
  bytes[page * page_bytes + 5] ^= std::byte{1};
  EXPECT_FALSE(place()) << "wrong bytes";
  EXPECT_EQ(copies, 0);
  bytes[page * page_bytes + 5] ^= std::byte{1};
  block().stored_at = 0;
  EXPECT_FALSE(place()) << "bytes that are not mapped";
  block().stored_at = 1;
  EXPECT_FALSE(place(Answer::no_memory));
  EXPECT_FALSE(block().here.has(page));
  EXPECT_EQ(tally.resident(), 0U);
}

TEST_F(Placement, GoesOnBehindPagesThatAreHereByAsMany) {
  know(page, 20);
  block().here = PageSet::of(page - 4, 4);
  EXPECT_TRUE(place());
  EXPECT_EQ(block().here, PageSet::of(page - 4, 9));
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(tally.resident(), 5U);
  EXPECT_EQ(tally.touched(), 5U);
  EXPECT_EQ(tally.counters.pages_in.load(), 5U);
}

TEST_F(Placement, GoesOnBackwards) {
  know(0, page + 1);
  block().here = PageSet::of(page + 1, 3);
  EXPECT_TRUE(place());
  EXPECT_EQ(block().here, PageSet::of(page - 3, 7));
}

TEST_F(Placement, BringsAtMostSixteenPages) {
  know(page, 100);
  block().here = PageSet::of(0, page) | PageSet::of(page + 101, 100);
  EXPECT_TRUE(place());
  EXPECT_EQ(block().here.count(), page + 100 + 1 + page) << "as many as there are before it";
  block().here = PageSet::of(page + 1, 100);
  know(0, page);
  EXPECT_TRUE(place());
  EXPECT_EQ(block().here, PageSet::of(0, page + 101)) << "up to the border of the block";
}

TEST_F(Placement, BringsOnePageWhereFewAreHere) {
  know(0, 100);
  block().here = PageSet::of(page - 2, 2) | PageSet::of(page + 1, 2);
  EXPECT_TRUE(place());
  EXPECT_EQ(block().here, PageSet::of(page - 2, 5));
  EXPECT_EQ(tally.resident(), 1U);
}

TEST_F(Placement, GoesOnOnlyToPagesThatItCanCopy) {
  const PageSet run = PageSet::of(page - 8, 8);
  know(page, 8);
  const auto comes_to = [&](std::size_t end) {
    block().here = run;
    EXPECT_TRUE(place());
    return block().here == (run | PageSet::of(page, end - page));
  };
  EXPECT_TRUE(comes_to(page + 8)) << "what is behind was never stored";
  tables.checksum_at(at + 3 * page_bytes) = pager::unknown_checksum;
  EXPECT_TRUE(comes_to(page + 3)) << "never fetched";
  bytes[(page + 2) * page_bytes] ^= std::byte{1};
  EXPECT_TRUE(comes_to(page + 2)) << "wrong bytes";
  block().beside = PageSet::of(page + 1, 1);
  EXPECT_TRUE(comes_to(page + 1)) << "beside";
}

TEST_F(Placement, GoesOnNoFurtherThanTheRegionAndTheLimit) {
  tables = {start, (page + 2) * page_bytes, memory.bytes().data()};
  know(page, 2);
  block().here = PageSet::of(page - 8, 8);
  EXPECT_TRUE(place());
  EXPECT_EQ(block().here, PageSet::of(page - 8, 10));
  block().here = PageSet::of(page - 8, 8);
  tally.set_limit(tally.resident() + 1);
  EXPECT_TRUE(place());
  EXPECT_EQ(block().here, PageSet::of(page - 8, 9));
}

TEST_F(Placement, CopiesThePageAloneIfTheKernelRefusesTheRun) {
  know(page, 20);
  block().here = PageSet::of(page - 4, 4);
  EXPECT_TRUE(place(Answer::ok, block_pages, 1));
  EXPECT_EQ(copies, 2);
  EXPECT_EQ(block().here, PageSet::of(page - 4, 5));
}

TEST_F(Placement, CountsThePagesThatCameBeforeAnother) {
  know(page - 8, 9);
  block().here = PageSet::of(page + 1, 8);
  EXPECT_FALSE(place(Answer::ok, 3)) << "the last page is the one that is wanted";
  EXPECT_EQ(block().here, PageSet::of(page - 8, 3) | PageSet::of(page + 1, 8));
  EXPECT_EQ(tally.resident(), 3U);
}

TEST(FaultMix, IsScatteredWhileScatteredFaultsPrevail) {
  pager::FaultMix mix;
  EXPECT_FALSE(mix.is_scattered());
  mix.add_stream(block_pages);
  mix.see_faults_by_threads(4600);
  EXPECT_FALSE(mix.is_scattered()) << "too few to tell";
  for (int i = 0; i < 10; ++i) mix.add_scattered();
  EXPECT_TRUE(mix.is_scattered());
  mix.see_faults_by_threads(4600);
  mix.add_stream(10);
  EXPECT_FALSE(mix.is_scattered()) << "faults that were seen before count once";
}

TEST(FaultMix, ForgetsOldFaults) {
  pager::FaultMix mix;
  mix.see_faults_by_threads(1'000'000'000);
  EXPECT_TRUE(mix.is_scattered());
  for (int i = 0; i < 70; ++i) mix.add_stream(block_pages);
  EXPECT_FALSE(mix.is_scattered());
}

TEST(Tally, HasRoomForBlocksIfTheLimitIsLargeOrStreamsPrevail) {
  pager::Tally tally;
  tally.set_limit(15 * block_pages);
  EXPECT_FALSE(tally.has_room_for_blocks());
  tally.set_limit(16 * block_pages);
  EXPECT_TRUE(tally.has_room_for_blocks());
  tally.set_scattered(true);
  EXPECT_FALSE(tally.has_room_for_blocks());
  tally.set_limit(64 * block_pages);
  EXPECT_TRUE(tally.has_room_for_blocks());
}

TEST(Tally, WakesThePagerOnceForManyWishes) {
  pager::Tally tally;
  EXPECT_TRUE(tally.wish_for_room());
  EXPECT_FALSE(tally.wish_for_room());
  tally.made_room();
  EXPECT_FALSE(tally.wish_for_room()) << "the pager has not seen the wish yet";
  EXPECT_TRUE(tally.take_wish());
  EXPECT_FALSE(tally.take_wish());
  EXPECT_FALSE(tally.wish_for_room());
  tally.made_room();
  EXPECT_TRUE(tally.wish_for_room());
}

// ---- A pager of this process ----

constexpr std::size_t mib = 1 << 20;
struct OwnFaults : test::NeedsPaging {};

TEST_F(OwnFaults, ServeMostScatteredFaultsInTheThread) {
  test::Paged paged(32 * mib, 8 * mib, {}, true, pager::Contents::zeros, 0, test::Faults::by_threads);
  const std::uint64_t seed = test::seed();
  test::write_all(paged.bytes(), seed);
  const auto before = paged.pager.statistics();
  test::Random random(seed);
  const std::size_t pages = paged.bytes().size() / page_bytes;
  for (int i = 0; i < 4000; ++i) {
    const std::size_t at = test::between(random, 0, pages - 1) * page_bytes;
    const auto expected = test::pattern(page_bytes, seed + at);
    ASSERT_EQ(std::memcmp(paged.bytes().data() + at, expected.data(), page_bytes), 0) << "seed " << seed;
  }
  const auto after = paged.pager.statistics();
  EXPECT_GT(after.faults_by_threads - before.faults_by_threads, 1000U);
  EXPECT_LE(after.resident_bytes, 8 * mib);
  EXPECT_TRUE(paged.failures().empty());
}

TEST_F(OwnFaults, AThreadThatFindsTheBlockHeldWaitsForItsHolder) {
  test::Paged paged(8 * mib, 4 * mib, {}, true, pager::Contents::zeros, 0, test::Faults::by_threads);
  constexpr std::size_t threads = 6;
  std::latch together(threads);
  std::vector<std::jthread> all;
  std::atomic<int> wrong{0};
  for (std::size_t thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      together.arrive_and_wait();
      for (std::size_t round = 0; round < 200; ++round) {
        for (std::size_t block = 0; block < 4; ++block) {
          // all threads in one block, each at a page of its own
          auto& byte =
              paged.bytes()[block * block_bytes + ((round * threads + thread) * 7 % block_pages) * page_bytes + thread];
          const auto value = static_cast<std::byte>(round);
          byte = value;
          if (byte != value) ++wrong;
        }
      }
    });
  }
  all.clear();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(paged.pager.statistics().faults_met_held, 0U);
}

TEST_F(OwnFaults, AHiddenRangeIsNotReadInPlace) {
  test::Paged paged(16 * mib, 4 * mib, {}, true, pager::Contents::zeros, 0, test::Faults::by_threads);
  test::write_all(paged.bytes(), 5);
  const auto hidden = paged.bytes().subspan(block_bytes + 7 * page_bytes, 3 * block_bytes);
  // some pages of each hidden block are here
  for (std::size_t at = 0; at < hidden.size(); at += 50 * page_bytes)
    (void)*static_cast<volatile std::byte*>(&hidden[at]);
  ASSERT_EQ(paged.pager.hide(reinterpret_cast<pager::Address>(hidden.data()), hidden.size()), Status::ok);
  ASSERT_EQ(::mprotect(hidden.data(), hidden.size(), PROT_NONE), 0);
  test::Random random(test::seed());
  for (int i = 0; i < 3000; ++i) {
    const std::size_t page = test::between(random, 4 * block_pages + 8, 8 * block_pages - 1);
    (void)*static_cast<volatile std::byte*>(&paged.bytes()[page * page_bytes]);
  }
  ASSERT_EQ(::mprotect(hidden.data(), hidden.size(), PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(test::wrong_pages(paged.bytes(), 5), 0U);
  EXPECT_EQ(paged.pager.hide(paged.memory.start() + 1, page_bytes), Status::invalid);
  EXPECT_EQ(paged.pager.hide(paged.memory.start(), 17 * mib), Status::bounds);
}

// Kernels that do not handle failing memory report a lost page as they report an absent one.
TEST_F(OwnFaults, ALostPageEndsTheProcess) {
  EXPECT_EXIT(
      {
        test::Paged paged(4 * mib, 1 * mib, {.limit_bytes = 0, .on_failure = [](const auto&) {}}, true,
                          pager::Contents::zeros, 0, test::Faults::by_threads);
        test::write_all(paged.bytes(), 1);
        paged.source.gone = true;
        for (std::size_t at = 0; at < paged.bytes().size(); at += page_bytes) {
          (void)*static_cast<volatile std::byte*>(&paged.bytes()[at]);
        }
      },
      testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace tonari
