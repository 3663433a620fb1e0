#include "far/file_store.hpp"

#include "../support/files.hpp"
#include "../support/random.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Tests of the store that keeps pages in a file.
namespace tonari {
namespace {

using far::FileStore;
using pager::block_bytes;
using pager::block_pages;
using pager::page_bytes;
using test::between;
using test::FileSizeLimit;
using test::MemoryFile;
using test::Random;

constexpr std::uint64_t arena_bytes = 64 * block_bytes;

std::string directory() { return std::filesystem::temp_directory_path(); }

/// Page-aligned memory of a block's size, as the pager's is.
struct alignas(page_bytes) Pages {
  std::array<std::byte, block_bytes> bytes;

  [[nodiscard]] std::span<std::byte> first(std::size_t pages) { return std::span(bytes).first(pages * page_bytes); }
};

TEST(FarFileStore, ReturnsWhatWasStoredLast) {
  Random random(test::seed());
  FileStore store(directory(), arena_bytes);
  std::vector<std::uint64_t> model(arena_bytes / page_bytes);  // seed of each page's bytes; 0: nothing is stored
  const auto pages = std::make_unique<Pages>();
  for (int round = 0; round < test::rounds(2000); ++round) {
    const std::size_t first = between(random, 0, model.size() - 1);
    const std::size_t in_block = block_pages - first % block_pages;
    const std::size_t count =
        between(random, 1, test::chance(random, 10) ? in_block : std::min<std::size_t>(in_block, 8));
    const auto range = std::span(model).subspan(first, count);
    const auto bytes = pages->first(count);
    if (test::chance(random, 50)) {
      for (std::size_t i = 0; i < count; ++i) {
        range[i] = random() | 1;
        std::ranges::copy(test::pattern(page_bytes, range[i]), bytes.data() + i * page_bytes);
      }
      ASSERT_EQ(store.store(first * page_bytes, bytes), Status::ok);
    } else if (test::chance(random, 20)) {
      ASSERT_EQ(store.discard(first * page_bytes, bytes.size()), Status::ok);
      std::ranges::fill(range, 0);
    } else if (std::ranges::count(range, 0U) == 0) {
      ASSERT_EQ(store.fetch(first * page_bytes, bytes), Status::ok);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(std::ranges::equal(test::pattern(page_bytes, range[i]), bytes.subspan(i * page_bytes, page_bytes)));
      }
    }
  }
}

TEST(FarFileStore, TakesSpaceForBlocksWithStoredPagesOnly) {
  MemoryFile memory;
  FileStore store(std::move(memory.file), "memory", arena_bytes);
  const auto pages = std::make_unique<Pages>();
  const auto space = [&] {
    struct stat about {};
    EXPECT_EQ(::fstat(memory.other.number(), &about), 0);
    return static_cast<std::uint64_t>(about.st_blocks) * 512;
  };

  ASSERT_EQ(store.store(5 * block_bytes + page_bytes, pages->first(1)), Status::ok);
  ASSERT_EQ(store.store(9 * block_bytes, pages->first(block_pages)), Status::ok);
  EXPECT_EQ(store.used_bytes(), 2 * block_bytes);
  EXPECT_EQ(store.data_bytes(), block_bytes + page_bytes);
  EXPECT_EQ(space(), 2 * block_bytes);

  ASSERT_EQ(store.discard(9 * block_bytes, block_bytes - page_bytes), Status::ok);
  EXPECT_EQ(store.used_bytes(), 2 * block_bytes);
  ASSERT_EQ(store.discard(0, arena_bytes), Status::ok);
  EXPECT_EQ(store.used_bytes(), 0U);
  EXPECT_EQ(store.used_peak_bytes(), 2 * block_bytes);
  EXPECT_EQ(store.data_bytes(), 0U);
  EXPECT_EQ(store.data_peak_bytes(), block_bytes + page_bytes);
  EXPECT_EQ(space(), 0U);
}

TEST(FarFileStore, SaysThatDataAreSparseIfTheyFillTheDisk) {
  MemoryFile memory;
  FileStore store(std::move(memory.file), "memory", arena_bytes);
  const auto pages = std::make_unique<Pages>();
  const FileSizeLimit limit(block_bytes);
  ASSERT_EQ(store.store(0, pages->first(1)), Status::ok);

  EXPECT_EQ(store.store(block_bytes, pages->first(1)), Status::no_memory);

  EXPECT_NE(store.why_it_failed().find("of which 4.0 KiB are in the file, which takes 2.0 MiB because they are sparse"),
            std::string::npos)
      << store.why_it_failed();
}

TEST(FarFileStore, ReportsAFileThatSomebodyHasTruncated) {
  MemoryFile memory;
  FileStore store(std::move(memory.file), "memory", arena_bytes);
  const auto pages = std::make_unique<Pages>();
  ASSERT_EQ(store.store(block_bytes, pages->first(4)), Status::ok);

  ASSERT_EQ(::ftruncate(memory.other.number(), block_bytes + page_bytes), 0);

  EXPECT_EQ(store.fetch(block_bytes, pages->first(4)), Status::bounds);
  EXPECT_NE(store.why_it_failed().find("has truncated it"), std::string::npos);
}

TEST(FarFileStore, ReportsErrorsOfTheDisk) {
  FileStore store(FileDescriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC)), "/mnt", arena_bytes);
  const auto pages = std::make_unique<Pages>();

  EXPECT_EQ(store.fetch(0, pages->first(1)), Status::invalid);
  EXPECT_NE(store.why_it_failed().find("the disk of /mnt does not work: "), std::string::npos);
}

TEST(FarFileStore, ReportsAFullDiskBeforeItOverwritesAnything) {
  MemoryFile memory;
  FileStore store(std::move(memory.file), "memory", arena_bytes);
  const auto pages = std::make_unique<Pages>();
  std::ranges::fill(pages->bytes, std::byte{1});
  ASSERT_EQ(store.store(0, pages->first(1)), Status::ok);

  // fallocate() and pwrite() beyond this size return EFBIG.
  const FileSizeLimit limit(block_bytes);
  EXPECT_EQ(store.store(block_bytes, pages->first(1)), Status::no_memory);
  EXPECT_NE(store.why_it_failed().find("memory has no room left"), std::string::npos);
  EXPECT_EQ(store.used_bytes(), block_bytes);

  ASSERT_EQ(store.fetch(0, pages->first(1)), Status::ok);
  EXPECT_EQ(pages->bytes[0], std::byte{1});
}

TEST(FarFileStore, RefusesADirectoryWhereNoFileCanBeCreated) {
  for (const char* const name : {"/no/such/directory", "/proc"}) {
    EXPECT_THROW((void)far::room_for_file(name), SetupError) << name;
    EXPECT_THROW(FileStore(name, arena_bytes), SetupError) << name;
  }
  EXPECT_GT(far::room_for_file(directory()), 0U);
}

}  // namespace
}  // namespace tonari
