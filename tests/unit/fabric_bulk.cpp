#include "fabric/bulk.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace tonari::fabric {
namespace {

struct FabricBulk : testing::Test {
  FabricBulk() { std::memset(bytes.get(), 0, bulk_memory_bytes); }

  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<void, Free> bytes{std::aligned_alloc(4096, (bulk_memory_bytes + 4095) / 4096 * 4096)};
  BulkMemory& memory = *static_cast<BulkMemory*>(bytes.get());
  BulkOwner owner{memory};

  std::vector<BulkPlace> take_all(std::size_t size, int reader) {
    std::vector<BulkPlace> places;
    while (const auto place = owner.allocate(size, reader, 0)) places.push_back(*place);
    return places;
  }
};

TEST_F(FabricBulk, TakesTheSmallestClassThatFitsThenLargerOnes) {
  const std::vector<BulkPlace> places = take_all(1, 1);

  ASSERT_EQ(places.size(), bulk_blocks * bulk_classes);
  for (std::size_t i = 0; i < places.size(); ++i) EXPECT_EQ(places[i].size_class(), i / bulk_blocks);
  EXPECT_FALSE(owner.allocate(1, 1, 0).has_value());
}

TEST_F(FabricBulk, ReservesSomeLargeBlocksForPageFaults) {
  std::size_t taken = 0;
  while (owner.allocate(bulk_tail_bytes_max, 1)) ++taken;
  EXPECT_EQ(taken, bulk_blocks - bulk_blocks_spared);
  EXPECT_EQ(take_all(bulk_tail_bytes_max, 1).size(), bulk_blocks_spared);
}

TEST_F(FabricBulk, BlocksInUseDoNotOverlap) {
  std::set<const std::byte*> ends;
  const std::byte* first = memory.blocks;
  std::size_t total = 0;
  for (const BulkPlace place : take_all(1, 1)) {
    const std::byte* at = owner.at(place);
    const std::size_t size = bulk_block_bytes[place.size_class()];
    EXPECT_GE(at, first);
    EXPECT_LE(at + size, static_cast<const std::byte*>(bytes.get()) + bulk_memory_bytes);
    EXPECT_TRUE(ends.insert(at + size).second);
    total += size;
  }
  EXPECT_EQ(total, BulkMemory::offset_of_class(bulk_classes));
}

TEST_F(FabricBulk, ABlockIsFreeAgainEachTimeItsReaderReturnsIt) {
  std::vector<BulkPlace> places = take_all(bulk_tail_bytes_max, 1);
  ASSERT_EQ(places.size(), bulk_blocks);
  for (int round = 0; round < 6; ++round) {
    for (BulkPlace& place : places) {
      BulkReader::give_back(memory, place);

      const auto again = owner.allocate(bulk_tail_bytes_max, 1, 0);
      ASSERT_TRUE(again.has_value()) << "round " << round;
      ASSERT_EQ(again->index(), place.index());
      ASSERT_NE(again->turn(), place.turn());
      ASSERT_FALSE(owner.allocate(bulk_tail_bytes_max, 1, 0).has_value());
      place = *again;
    }
  }
}

TEST_F(FabricBulk, TidyFreesTheBlocksThatReadersReturned) {
  std::vector<BulkPlace> places = take_all(200, 1);
  for (const BulkPlace place : places) BulkReader::give_back(memory, place);

  owner.tidy();

  const auto place = owner.allocate(200, 1, 0);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->size_class(), 0U);
  EXPECT_EQ(place->index(), 0U);
}

TEST_F(FabricBulk, ADeadReadersBlocksAreFreedAndNoOthers) {
  std::vector<BulkPlace> of_one;
  std::vector<BulkPlace> of_two;
  for (std::size_t i = 0; i < bulk_blocks; ++i) {
    (i % 2 == 0 ? of_one : of_two).push_back(*owner.allocate(bulk_tail_bytes_max, i % 2 == 0 ? 1 : 2, 0));
  }

  owner.reader_died(1);
  EXPECT_EQ(take_all(bulk_tail_bytes_max, 3).size(), of_one.size());

  for (const BulkPlace place : of_two) BulkReader::give_back(memory, place);
  EXPECT_EQ(take_all(bulk_tail_bytes_max, 3).size(), of_two.size());
}

TEST_F(FabricBulk, LookFindsTheBytesThatTheOwnerWrote) {
  const auto place = owner.allocate(5000, 1, 0);
  ASSERT_TRUE(place.has_value());
  std::memset(owner.at(*place), 0x5a, 5000);

  const auto tail = BulkReader::look(memory, *place, 5000);

  ASSERT_EQ(tail.size(), 5000U);
  EXPECT_EQ(tail.front(), std::byte{0x5a});
  EXPECT_EQ(tail.back(), std::byte{0x5a});
}

TEST_F(FabricBulk, LookRefusesPlacesThatAreNoBlock) {
  EXPECT_TRUE(BulkReader::look(memory, BulkPlace{1 << 9}, 1).empty());
  EXPECT_TRUE(BulkReader::look(memory, BulkPlace{~std::uint64_t{0}}, 1).empty());
  for (std::size_t size_class = 0; size_class < bulk_classes; ++size_class) {
    const BulkPlace place{63 | size_class << 6};
    EXPECT_EQ(BulkReader::look(memory, place, bulk_block_bytes[size_class]).size(), bulk_block_bytes[size_class]);
    EXPECT_TRUE(BulkReader::look(memory, place, bulk_block_bytes[size_class] + 1).empty());
    EXPECT_TRUE(BulkReader::look(memory, place, ~std::uint64_t{0}).empty());
  }
}

// A head may name any place and length: the memory that look() returns is within the blocks.
TEST_F(FabricBulk, LookStaysWithinTheMemoryForAnyHead) {
  constexpr std::uint64_t seed = 7;
  std::mt19937_64 random(seed);
  const auto* end = static_cast<const std::byte*>(bytes.get()) + bulk_memory_bytes;
  for (int i = 0; i < 100'000; ++i) {
    const auto tail = BulkReader::look(memory, BulkPlace{random() >> (random() % 64)}, random() >> (random() % 64));
    if (tail.empty()) continue;
    ASSERT_GE(tail.data(), memory.blocks) << "seed " << seed << ", step " << i;
    ASSERT_LE(tail.data() + tail.size(), end) << "seed " << seed << ", step " << i;
  }
}

TEST_F(FabricBulk, ThreadsOfTheOwnerNeverGetTheSameBlock) {
  std::vector<std::vector<BulkPlace>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back([this, &mine] {
      for (int i = 0; i < 2000; ++i) {
        const auto place = owner.allocate(100, 1);
        if (!place) break;
        std::memset(owner.at(*place), i, 100);
        if (i % 50 == 0) {
          mine.push_back(*place);
        } else {
          BulkReader::give_back(memory, *place);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();

  std::set<std::uint64_t> places;
  std::size_t kept = 0;
  for (const auto& mine : got) {
    for (const BulkPlace place : mine) places.insert(place.value & 0xff);
    kept += mine.size();
  }
  EXPECT_EQ(places.size(), kept);
  EXPECT_GT(kept, 0U);
}

}  // namespace
}  // namespace tonari::fabric
