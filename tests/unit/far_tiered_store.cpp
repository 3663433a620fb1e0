#include "far/tiered_store.hpp"

#include "../support/files.hpp"
#include "../support/stored_pages.hpp"
#include "../support/windows.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// Tests of the store that compresses pages, and moves cold ones to a file.
namespace tonari {
namespace {

using far::FileStore;
using far::PackedStore;
using far::Servers;
using far::Store;
using far::TieredStore;
using pager::block_bytes;
using pager::block_pages;
using pager::page_bytes;
using test::Bytes;
using test::FileSizeLimit;
using test::MemoryFile;
using test::pages_of;
using test::Random;

constexpr std::uint64_t arena_bytes = 64 * block_bytes;

/// The tiers of a test: two servers, with one copy of each page, and a file.
struct Tiers {
  Tiers(Servers& lent, FileDescriptor descriptor)
      : servers(lent),
        plain(lent, lent.lent_bytes()),
        packed(plain, arena_bytes),
        file(std::move(descriptor), "memory", arena_bytes),
        store(lent, packed, file, arena_bytes) {}

  /// Stores new bytes in a block, none of which can be compressed, and returns them.
  Bytes fill(std::uint64_t block) {
    Bytes bytes = pages_of(random, block_pages, page_bytes);
    EXPECT_EQ(store.store(block * block_bytes, bytes), Status::ok) << block;
    return bytes;
  }
  Bytes fetched(std::uint64_t block) {
    Bytes into(block_bytes, std::byte{0x77});
    EXPECT_EQ(store.fetch(block * block_bytes, into), Status::ok) << block;
    return into;
  }
  /// Returns true if the pages of the block come from the file.
  bool is_in_file(std::uint64_t block) {
    const std::uint64_t before = store.bytes_from_file();
    (void)fetched(block);
    return store.bytes_from_file() - before == block_bytes;
  }

  Random random{test::seed()};
  Servers& servers;
  Store plain;
  PackedStore packed;
  FileStore file;
  TieredStore store;
};

class FarTieredStore : public testing::TestWithParam<test::Variant> {
 protected:
  /// Runs `body` at rank 0, which is not a server. The servers lend `blocks` blocks together.
  static void run(std::uint64_t blocks, FileDescriptor file, const std::function<void(Tiers&)>& body) {
    const auto of_rank = [&](Job& job) {
      Window window(job, job.rank() == 0 ? 0 : blocks / 2 * block_bytes);
      if (job.rank() == 0) {
        Servers lent(window, {1, 2}, 1);
        Tiers tiers(lent, std::move(file));
        body(tiers);
      }
      EXPECT_EQ(window.barrier(), Status::ok);
    };
    test::as_jobs(3, of_rank, GetParam().settings);
  }
  static void run(std::uint64_t blocks, const std::function<void(Tiers&)>& body) {
    run(blocks, std::move(MemoryFile().file), body);
  }
};

INSTANTIATE_TEST_SUITE_P(Servers, FarTieredStore,
                         testing::Values(test::Variant{"Here", {}},
                                         test::Variant{"Elsewhere", {"TONARI_APART=network", test::network_setting()}}),
                         test::name_of);

TEST_P(FarTieredStore, DoesNotUseTheFileWhileTheServersHaveRoom) {
  run(8, [](Tiers& tiers) {
    const Bytes pages = pages_of(tiers.random, 16 * block_pages, 100);

    ASSERT_EQ(tiers.store.store(0, pages), Status::ok);

    EXPECT_EQ(tiers.store.bytes_to_file(), 0U);
    EXPECT_EQ(tiers.file.used_peak_bytes(), 0U);
    EXPECT_EQ(tiers.packed.kept_bytes(), pages.size());
  });
}

TEST_P(FarTieredStore, MovesTheBlocksThatWereStoredFirstToTheFile) {
  run(8, [](Tiers& tiers) {
    std::vector<Bytes> blocks;
    for (std::uint64_t block = 0; block < 24; ++block) blocks.push_back(tiers.fill(block));

    for (std::uint64_t block = 0; block < 24; ++block) EXPECT_EQ(tiers.fetched(block), blocks[block]) << block;
    for (std::uint64_t block = 0; block < 16; ++block) EXPECT_TRUE(tiers.is_in_file(block)) << block;
    for (std::uint64_t block = 18; block < 24; ++block) EXPECT_FALSE(tiers.is_in_file(block)) << block;
    EXPECT_EQ(tiers.packed.kept_bytes() + tiers.file.used_bytes(), 24 * block_bytes);
    EXPECT_EQ(tiers.store.bytes_to_file(), tiers.file.used_bytes());
  });
}

TEST_P(FarTieredStore, MovesBlocksThatWereFetchedLater) {
  run(8, [](Tiers& tiers) {
    for (std::uint64_t block = 0; block < 7; ++block) (void)tiers.fill(block);
    (void)tiers.fetched(0);

    for (std::uint64_t block = 7; block < 10; ++block) (void)tiers.fill(block);

    EXPECT_FALSE(tiers.is_in_file(0));
    EXPECT_TRUE(tiers.is_in_file(1));
  });
}

TEST_P(FarTieredStore, TakesRewrittenPagesOutOfTheFile) {
  run(8, [](Tiers& tiers) {
    for (std::uint64_t block = 0; block < 12; ++block) (void)tiers.fill(block);
    ASSERT_TRUE(tiers.is_in_file(0));
    ASSERT_EQ(tiers.store.discard(block_bytes, 11 * block_bytes), Status::ok);
    ASSERT_EQ(tiers.file.used_bytes(), block_bytes);

    const Bytes page = pages_of(tiers.random, 1, 1000);
    ASSERT_EQ(tiers.store.store(5 * page_bytes, page), Status::ok);
    Bytes into(2 * page_bytes);
    ASSERT_EQ(tiers.store.fetch(5 * page_bytes, into), Status::ok);
    EXPECT_TRUE(std::ranges::equal(std::span(into).first(page_bytes), page));
    EXPECT_EQ(tiers.packed.kept_bytes(), page_bytes);
    EXPECT_EQ(tiers.file.used_bytes(), block_bytes);

    const Bytes block = tiers.fill(0);
    EXPECT_EQ(tiers.file.used_bytes(), 0U);
    EXPECT_EQ(tiers.fetched(0), block);
  });
}

TEST_P(FarTieredStore, GivesTheRoomOfDiscardedPagesBack) {
  run(8, [](Tiers& tiers) {
    for (std::uint64_t block = 0; block < 20; ++block) (void)tiers.fill(block);

    ASSERT_EQ(tiers.store.discard(0, arena_bytes), Status::ok);

    EXPECT_EQ(tiers.packed.kept_bytes(), 0U);
    EXPECT_EQ(tiers.packed.free_bytes(), 0U);
    EXPECT_EQ(tiers.servers.used_bytes(), 0U);
    EXPECT_EQ(tiers.file.used_bytes(), 0U);
  });
}

// Pages whose slots are of another size than the free ones go to the file at once, if moving blocks does not help.
TEST_P(FarTieredStore, StoresPagesForWhichNoSlotIsFree) {
  run(4, [](Tiers& tiers) {
    const Bytes small = pages_of(tiers.random, 16 * block_pages, 700);
    ASSERT_EQ(tiers.store.store(0, small), Status::ok);
    std::vector<Bytes> blocks;
    for (std::uint64_t block = 32; block < 40; ++block) blocks.push_back(tiers.fill(block));

    for (std::uint64_t block = 32; block < 40; ++block) EXPECT_EQ(tiers.fetched(block), blocks[block - 32]);
    Bytes into(small.size());
    ASSERT_EQ(tiers.store.fetch(0, into), Status::ok);
    EXPECT_EQ(into, small);
  });
}

TEST_P(FarTieredStore, RunsOnWithAFullDiskUntilTheServersAreFull) {
  run(8, [](Tiers& tiers) {
    std::vector<Bytes> blocks;
    std::optional<FileSizeLimit> full(std::in_place, 0);
    for (std::uint64_t block = 0; block < 8; ++block) blocks.push_back(tiers.fill(block));
    const Bytes more = pages_of(tiers.random, 2, page_bytes);
    EXPECT_EQ(tiers.store.store(20 * block_bytes, more), Status::no_memory);
    EXPECT_EQ(tiers.store.store(3 * block_bytes, more), Status::no_memory);
    EXPECT_NE(tiers.file.why_it_failed().find("memory has no room left"), std::string::npos);
    for (std::uint64_t block = 0; block < 8; ++block) EXPECT_EQ(tiers.fetched(block), blocks[block]) << block;
    EXPECT_EQ(tiers.store.bytes_to_file(), 0U);

    full.reset();
    for (std::uint64_t block = 8; block < 16; ++block) blocks.push_back(tiers.fill(block));
    for (std::uint64_t block = 0; block < 16; ++block) EXPECT_EQ(tiers.fetched(block), blocks[block]) << block;
  });
}

TEST_P(FarTieredStore, ReportsErrorsOfTheDiskAndKeepsThePages) {
  run(8, FileDescriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC)), [](Tiers& tiers) {
    const Bytes first = tiers.fill(0);
    const Bytes pages = pages_of(tiers.random, block_pages, page_bytes);
    Status status = Status::ok;
    for (std::uint64_t block = 1; block < 9 && status == Status::ok; ++block) {
      status = tiers.store.store(block * block_bytes, pages);
    }
    EXPECT_EQ(status, Status::invalid);
    EXPECT_NE(tiers.file.why_it_failed().find("the disk of memory does not work: "), std::string::npos);
    EXPECT_EQ(tiers.fetched(0), first);
  });
}

TEST_P(FarTieredStore, ReportsAFileThatSomebodyHasTruncated) {
  MemoryFile memory;
  run(8, std::move(memory.file), [&](Tiers& tiers) {
    for (std::uint64_t block = 0; block < 12; ++block) (void)tiers.fill(block);
    ASSERT_TRUE(tiers.is_in_file(0));

    ASSERT_EQ(::ftruncate(memory.other.number(), page_bytes), 0);

    Bytes into(block_bytes);
    EXPECT_EQ(tiers.store.fetch(0, into), Status::bounds);
    EXPECT_NE(tiers.file.why_it_failed().find("has truncated it"), std::string::npos);
  });
}

TEST_P(FarTieredStore, ReturnsWhatWasStoredLast) {
  run(8, [](Tiers& tiers) {
    test::StoredPages model(tiers.store, 100, 20'000, test::seed());
    for (int i = 0; i < test::rounds(500); ++i) model.step();
    model.compare(0, 20'000);
    EXPECT_GT(tiers.store.bytes_to_file(), 0U);
    EXPECT_GT(tiers.store.bytes_from_file(), 0U);
    model.discard(0, 20'000);
    EXPECT_EQ(tiers.packed.kept_bytes() + tiers.file.used_bytes(), 0U);
  });
}

// The disk gets full and has room again, at random. The limit is between two blocks, because a disk on which a block is
// reserved does not fail in the middle of it.
TEST_P(FarTieredStore, ReturnsWhatWasStoredLastThoughTheDiskGetsFull) {
  run(8, [](Tiers& tiers) {
    test::StoredPages model(tiers.store, 100, 20'000, test::seed());
    model.may_be_full();
    for (int i = 0; i < test::rounds(100); ++i) {
      std::optional<FileSizeLimit> limit;
      if (test::chance(tiers.random, 50)) limit.emplace(test::between(tiers.random, 0, 64) * block_bytes);
      for (int step = 0; step < 5; ++step) model.step();
    }
    model.compare(0, 20'000);
  });
}

TEST_P(FarTieredStore, ReturnsThePagesStoredByConcurrentThreads) {
  run(8, [](Tiers& tiers) {
    constexpr std::size_t pages = 7000;  // threads use different pages, but share blocks
    test::in_threads(3, [&](int thread) {
      const auto number = static_cast<std::size_t>(thread);
      test::StoredPages model(tiers.store, number * pages, pages, test::seed() * 3 + number);
      for (int i = 0; i < test::rounds(200); ++i) model.step();
      model.compare(0, pages);
      model.discard(0, pages);
    });
    EXPECT_GT(tiers.store.bytes_to_file(), 0U);
    EXPECT_EQ(tiers.packed.kept_bytes(), 0U);
    EXPECT_EQ(tiers.servers.used_bytes(), 0U);
    EXPECT_EQ(tiers.file.used_bytes(), 0U);
  });
}

}  // namespace
}  // namespace tonari
