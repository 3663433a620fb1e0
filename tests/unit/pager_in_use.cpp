#include "../support/pager.hpp"
#include "../support/random.hpp"

#include <tonari/status.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <vector>

// Tests of regions that are added while threads use them: some of their pages are present.
namespace tonari {
namespace {

using pager::page_bytes;
using test::Faults;

constexpr std::size_t mib = 1 << 20;
constexpr std::size_t size = 24 * mib + 5 * page_bytes;
constexpr std::size_t limit = 4 * mib;

/// A pager without a region, and memory for one, which does not begin at a block.
struct Later {
  explicit Later(Faults faults)
      : source(size),
        memory(size, 3 * page_bytes),
        space(test::space_for(faults, limit, source.bytes())),
        pager(*space,
              {.limit_bytes = limit, .movers = 1, .on_failure = [this](const pager::Failure&) { ++failures; }}) {}

  /// Tells the pager of all pages that are present, in one call for each run.
  void tell_present() {
    std::vector<unsigned char> there(size / page_bytes);
    ASSERT_EQ(::mincore(memory.bytes().data(), size, there.data()), 0);
    for (std::size_t first = 0; first < there.size();) {
      std::size_t end = first;
      while (end < there.size() && (there[end] & 1) == (there[first] & 1)) ++end;
      if ((there[first] & 1) != 0) {
        ASSERT_EQ(pager.know_present(memory.start() + first * page_bytes, (end - first) * page_bytes), Status::ok);
      }
      first = end;
    }
    ASSERT_EQ(pager.know_all_present(memory.start()), Status::ok);
  }

  test::MemorySource source;
  test::RegionMemory memory;
  std::unique_ptr<pager::OwnSpace> space;
  std::atomic<int> failures{0};
  pager::Pager pager;
};

struct PagerInUse : test::NeedsPaging {};

constexpr std::array every_way{Faults::by_pager, Faults::by_pager_in_place, Faults::by_threads};

TEST_F(PagerInUse, PagesThatWerePresentLeaveAndComeBack) {
  for (const Faults faults : every_way) {
    Later later(faults);
    const auto written = later.memory.bytes().first(10 * mib);
    test::write_all(written, 1);

    later.pager.add_in_use(later.memory.start(), size, later.source);
    later.tell_present();

    EXPECT_TRUE(test::eventually([&] { return later.pager.statistics().resident_bytes <= limit; }));
    EXPECT_EQ(test::wrong_pages(written, 1), 0U);
    for (const std::byte& each : later.memory.bytes().subspan(10 * mib)) ASSERT_EQ(each, std::byte{0});
    EXPECT_GE(later.pager.statistics().bytes_out, 6 * mib);
    EXPECT_EQ(later.failures, 0);
  }
}

// Other pages of the same blocks come and go.
TEST_F(PagerInUse, PagesThatThePagerIsNotToldOfStay) {
  for (const Faults faults : every_way) {
    Later later(faults);
    const auto bytes = later.memory.bytes();
    for (std::size_t at = 0; at < size; at += 7 * page_bytes) bytes[at + 11] = std::byte{9};

    later.pager.add_in_use(later.memory.start(), size, later.source);

    for (unsigned pass = 1; pass <= 2; ++pass) {
      for (std::size_t at = 0; at < size; at += page_bytes) bytes[at] = static_cast<std::byte>(pass + at / page_bytes);
      for (std::size_t at = 0; at < size; at += page_bytes) {
        ASSERT_EQ(bytes[at], static_cast<std::byte>(pass + at / page_bytes)) << at;
        ASSERT_EQ(bytes[at + 11], at % (7 * page_bytes) == 0 ? std::byte{9} : std::byte{0}) << at;
      }
    }
    EXPECT_EQ(later.failures, 0);
  }
}

// Each thread changes every third page, and knows what it has written there.
void use_pages(std::span<std::byte> bytes, std::size_t thread, std::uint64_t seed, const std::atomic<bool>& is_done) {
  test::Random random(seed + thread);
  const std::size_t count = bytes.size() / page_bytes;
  std::vector<std::uint64_t> wrote(count);
  const auto check = [&](std::size_t page) {
    std::uint64_t found = 0;
    std::memcpy(&found, bytes.data() + page * page_bytes + 40, sizeof found);
    EXPECT_EQ(found, wrote[page]) << "page " << page;
  };
  for (int step = 0; step < test::rounds(20'000) || !is_done.load(std::memory_order_relaxed); ++step) {
    const std::size_t first = random() % count;
    for (std::size_t page = first; page < std::min(count, first + random() % 64); ++page) {
      if (page % 3 != thread) continue;
      check(page);
      if (random() % 2 == 0) continue;
      wrote[page] = random();
      std::memcpy(bytes.data() + page * page_bytes + 40, &wrote[page], sizeof wrote[page]);
    }
  }
  for (std::size_t page = thread; page < count; page += 3) check(page);
}

TEST_F(PagerInUse, ThreadsThatUseTheMemoryMeanwhileLoseNothing) {
  const std::uint64_t seed = test::seed();
  for (const Faults faults : every_way) {
    Later later(faults);
    std::atomic<bool> is_done{false};
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, thread] { use_pages(later.memory.bytes(), thread, seed, is_done); });
    }
    std::size_t seen = 0;
    while (seen < 200) {  // they have begun
      std::vector<unsigned char> there(size / page_bytes);
      ASSERT_EQ(::mincore(later.memory.bytes().data(), size, there.data()), 0);
      seen = static_cast<std::size_t>(std::ranges::count_if(there, [](unsigned char each) { return (each & 1) != 0; }));
    }

    later.pager.add_in_use(later.memory.start(), size, later.source);
    later.tell_present();

    is_done = true;
    threads.clear();
    EXPECT_EQ(later.failures, 0);
    EXPECT_GT(later.pager.statistics().bytes_out, 0U);
  }
}

}  // namespace
}  // namespace tonari
