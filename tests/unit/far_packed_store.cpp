#include "far/packed_store.hpp"

#include "../support/stored_pages.hpp"
#include "../support/windows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

// Tests of the store that keeps compressed pages in the memory of other ranks.
namespace tonari {
namespace {

using far::PackedStore;
using far::Piece;
using far::Servers;
using far::Store;
using pager::block_bytes;
using pager::block_pages;
using pager::page_bytes;
using test::Bytes;
using test::pages_of;
using test::Random;
using test::some_pages;

constexpr std::size_t mib = 1 << 20;
constexpr std::uint64_t arena_bytes = 256 * mib;

/// A store over several servers; by default there are two servers of 32 MiB.
class FarPackedStore : public testing::TestWithParam<test::Variant> {
 protected:
  struct Order {
    int count = 2;
    unsigned replicas = 1;
    std::uint64_t bytes = 32 * mib;
  };
  /// Runs `body` at rank 0, which is not a server.
  static void run(const Order& order, const std::function<void(Servers&, Store&, PackedStore&)>& body) {
    const auto of_rank = [&](Job& job) {
      Window window(job, job.rank() == 0 ? 0 : order.bytes);
      if (job.rank() == 0) {
        std::vector<int> ranks;
        for (int rank = 1; rank <= order.count; ++rank) ranks.push_back(rank);
        Servers lent(window, ranks, order.replicas);
        Store store(lent, static_cast<std::uint64_t>(order.count) * order.bytes);
        PackedStore packed(store, arena_bytes);
        body(lent, store, packed);
      }
      EXPECT_EQ(window.barrier(), Status::ok);
    };
    test::as_jobs(order.count + 1, of_rank, GetParam().settings);
  }

  static Bytes fetched(PackedStore& packed, std::uint64_t place, std::size_t bytes) {
    Bytes into(bytes, std::byte{0x77});
    EXPECT_EQ(packed.fetch(place, into), Status::ok);
    return into;
  }
};

INSTANTIATE_TEST_SUITE_P(Servers, FarPackedStore,
                         testing::Values(test::Variant{"Here", {}},
                                         test::Variant{"Elsewhere", {"TONARI_APART=network", test::network_setting()}}),
                         test::name_of);

TEST(FarPiece, IsAWordOfPlaceAndLength) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(Piece(5 * 256, 300)), 5 * 256 << 13 | 300);
  EXPECT_EQ(Piece(0, 300).slot_bytes(), 512u);
  EXPECT_EQ(Piece(0, page_bytes).slot_bytes(), page_bytes);
  EXPECT_FALSE(Piece().exists());
  EXPECT_TRUE(Piece(512, 100).follows(Piece(0, 300)));
  EXPECT_FALSE(
      Piece(block_bytes, 4096)
          .follows(Piece(block_bytes - 4096, 4096)));  // adjacent pieces of different chunks do not follow each other
}

TEST_P(FarPackedStore, TakesLessMemoryThanThePages) {
  run({}, [](Servers& servers, Store&, PackedStore& packed) {
    Random random(test::seed());
    const Bytes pages = pages_of(random, 16 * block_pages, 100);

    ASSERT_EQ(packed.store(block_bytes, pages), Status::ok);

    EXPECT_EQ(packed.kept_bytes(), 32 * mib);
    EXPECT_EQ(packed.packed_bytes(), 2 * mib);
    EXPECT_EQ(servers.used_bytes(), 2 * mib);
    EXPECT_EQ(fetched(packed, block_bytes, pages.size()), pages);
  });
}

TEST_P(FarPackedStore, ReusesSlots) {
  run({}, [](Servers& servers, Store&, PackedStore& packed) {
    Random random(test::seed());
    Bytes pages;
    for (int i = 0; i < 20; ++i) {
      pages = pages_of(random, block_pages, 1000);
      ASSERT_EQ(packed.store(0, pages), Status::ok);
    }
    EXPECT_EQ(servers.used_bytes(), 2 * mib);
    EXPECT_EQ(fetched(packed, 0, pages.size()), pages);
  });
}

TEST_P(FarPackedStore, KeepsItsPagesWhenItIsFull) {
  run({.count = 1, .bytes = 8 * mib}, [](Servers& servers, Store&, PackedStore& packed) {
    Random random(test::seed());
    const Bytes pages = pages_of(random, 4 * block_pages, page_bytes);
    ASSERT_EQ(packed.store(0, pages), Status::ok);
    ASSERT_EQ(packed.packed_bytes(), 8 * mib);

    EXPECT_EQ(packed.store(3 * page_bytes, pages_of(random, 2, page_bytes)), Status::no_memory);
    EXPECT_EQ(packed.store(8 * mib, pages_of(random, 1, 0)), Status::no_memory);
    EXPECT_EQ(packed.packed_bytes(), 8 * mib);
    EXPECT_EQ(fetched(packed, 0, pages.size()), pages);

    ASSERT_EQ(packed.discard(block_bytes, 2 * block_bytes), Status::ok);
    EXPECT_EQ(servers.used_bytes(), 6 * mib);  // one empty chunk is kept as a spare
    const Bytes others = pages_of(random, 1, 0);
    EXPECT_EQ(packed.store(8 * mib, others), Status::ok);
    EXPECT_EQ(fetched(packed, 8 * mib, page_bytes), others);
  });
}

// Only two of the three pages fit, so none of them is stored.
TEST_P(FarPackedStore, StoresAllPagesOrNone) {
  run({.count = 1, .bytes = 2 * mib}, [](Servers&, Store&, PackedStore& packed) {
    Random random(test::seed());
    const Bytes pages = pages_of(random, block_pages - 2, page_bytes);
    ASSERT_EQ(packed.store(0, pages), Status::ok);

    EXPECT_EQ(packed.store(page_bytes, pages_of(random, 3, page_bytes)), Status::no_memory);

    EXPECT_EQ(fetched(packed, 0, pages.size()), pages);
    EXPECT_EQ(packed.kept_bytes(), pages.size());
    EXPECT_EQ(packed.store(page_bytes, pages_of(random, 2, page_bytes)), Status::ok);
  });
}

TEST_P(FarPackedStore, ReturnsOtherBytesForPiecesThatAServerOverwrote) {
  run({.count = 1}, [](Servers& servers, Store&, PackedStore& packed) {
    Window& window = servers.window();
    Random random(test::seed());
    const Bytes pages = some_pages(random, block_pages);
    ASSERT_EQ(packed.store(0, pages), Status::ok);
    for (std::uint64_t at = 0; at < window.bytes(JobRank{1}); at += mib) {
      ASSERT_EQ(window.push(window.at(JobRank{1}, at), test::pattern(mib, random())), Status::ok);
    }
    for (std::size_t page = 0; page < block_pages; ++page) {
      const Bytes found = fetched(packed, page * page_bytes, page_bytes);
      const auto right = std::span(pages).subspan(page * page_bytes, page_bytes);
      EXPECT_FALSE(std::ranges::equal(found, right)) << page;
    }
  });
}

TEST_P(FarPackedStore, SurvivesTheDeathOfOneOfTwoServers) {
  run({.replicas = 2}, [](Servers& servers, Store& store, PackedStore& packed) {
    Random random(test::seed());
    const Bytes pages = some_pages(random, 700);
    ASSERT_EQ(packed.store(0, pages), Status::ok);
    EXPECT_EQ(servers.capacity_bytes(), 32 * mib);  // each page is stored twice
    servers.died(1);
    ASSERT_EQ(store.lost_bytes(), 0u);
    EXPECT_EQ(servers.capacity_bytes(), 32 * mib);  // each page is stored once, on the surviving server
    EXPECT_EQ(fetched(packed, 0, pages.size()), pages);
    const Bytes others = some_pages(random, 700);
    EXPECT_EQ(packed.store(0, others), Status::ok);
    EXPECT_EQ(fetched(packed, 0, others.size()), others);
  });
}

TEST_P(FarPackedStore, KeepsTheCopiesOfAChunkOnTwoServers) {
  for (const int dead : {1, 2, 3}) {
    run({.count = 3, .replicas = 2, .bytes = 4 * mib}, [&](Servers& servers, Store& store, PackedStore&) {
      EXPECT_EQ(servers.capacity_bytes(), 6 * mib);
      std::uint64_t chunks = 0;
      while (store.take_chunk(chunks * block_bytes)) ++chunks;
      EXPECT_EQ(chunks, 3u);
      servers.died(dead);
      EXPECT_EQ(store.lost_bytes(), 0u);
    });
  }
}

TEST_P(FarPackedStore, ReturnsAllMemoryForTheNextStore) {
  run({}, [](Servers& servers, Store& store, PackedStore& packed) {
    Random random(test::seed());
    ASSERT_EQ(packed.store(0, some_pages(random, 3000)), Status::ok);
    EXPECT_GT(servers.used_bytes(), 2 * mib);
    store.give_all_back();
    EXPECT_EQ(servers.used_bytes(), 0u);
    Store next(servers, 64 * mib);
    std::uint64_t chunks = 0;
    while (next.take_chunk(chunks * block_bytes)) ++chunks;
    EXPECT_EQ(chunks * block_bytes, servers.capacity_bytes());
  });
}

TEST_P(FarPackedStore, ReturnsThePagesStoredByConcurrentThreads) {
  run({.count = 2, .replicas = 2, .bytes = 64 * mib}, [](Servers& servers, Store&, PackedStore& packed) {
    constexpr std::size_t pages = 1200;  // threads use different pages, but share blocks
    test::in_threads(3, [&](int thread) {
      const auto number = static_cast<std::size_t>(thread);
      test::StoredPages model(packed, number * pages, pages, test::seed() * 3 + number);
      for (int i = 0; i < test::rounds(60); ++i) model.step();
      model.compare(0, pages);
      model.discard(0, pages);
    });
    EXPECT_EQ(packed.kept_bytes(), 0u);
    EXPECT_EQ(packed.packed_bytes(), 0u);
    EXPECT_EQ(servers.used_bytes(), 0u);
  });
}

}  // namespace
}  // namespace tonari
