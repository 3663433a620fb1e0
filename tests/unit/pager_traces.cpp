#include "../support/page_traces.hpp"
#include "../support/paged_kernels.hpp"
#include "../support/pager.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

// Kernels whose data are five times as large as the room for them: how many pages the pager fetches, compared with LRU
// and OPT over single pages.
namespace tonari {
namespace {

using pager::block_pages;
using pager::page_bytes;

using Pages = std::vector<std::uint32_t>;

test::PageTrace trace_of(const Pages& pages, const std::byte* start) {
  test::PageTrace trace(start);
  for (const std::uint32_t page : pages) trace.touch(start + page * page_bytes);
  return trace;
}

Pages repeated(const Pages& pages, int times) {
  Pages result;
  for (int i = 0; i < times; ++i) result.insert(result.end(), pages.begin(), pages.end());
  return result;
}

TEST(PageTrace, HasAdjacentTouchesOfAPageOnce) {
  const std::vector<std::byte> memory(4 * page_bytes);
  test::PageTrace trace(memory.data());
  for (const std::size_t at : {std::size_t{0}, page_bytes - 1, page_bytes, std::size_t{8}, 3 * page_bytes}) {
    trace.touch(memory.data() + at);
  }
  EXPECT_TRUE(std::ranges::equal(trace.pages(), Pages{0, 1, 0, 3}));
  EXPECT_TRUE(std::ranges::equal(trace_of({0, 0, 2, 2, 0}, memory.data()).pages(), Pages{0, 2, 0}));
}

TEST(PageTrace, FirstTouchesCostNoFetch) {
  EXPECT_EQ(test::fetches_of_lru(Pages{}, 2), 0U);
  EXPECT_EQ(test::fetches_of_opt(Pages{}, 2), 0U);
  EXPECT_EQ(test::fetches_of_lru(Pages{4, 0, 1, 3, 2}, 2), 0U);
  EXPECT_EQ(test::fetches_of_opt(Pages{4, 0, 1, 3, 2}, 2), 0U);
}

// With room for 3 of 4 pages, LRU always has the wrong ones. OPT misses once in 3 accesses:
//   0 1 2 [3] 0 1 [2] 3 0 [1] 2 3 [0] 1 2 [3]
TEST(PageTrace, ALoopOverOnePageTooMany) {
  const Pages loop = repeated({0, 1, 2, 3}, 4);
  EXPECT_EQ(test::fetches_of_lru(loop, 3), 12U);
  EXPECT_EQ(test::fetches_of_opt(loop, 3), 4U);
  EXPECT_EQ(test::fetches_of_lru(loop, 4), 0U);
  EXPECT_EQ(test::fetches_of_opt(loop, 4), 0U);
}

// Belady's example. LRU misses 10 times and OPT 7 times; 5 of these are first touches.
TEST(PageTrace, BeladysExample) {
  const Pages pages{1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5};
  EXPECT_EQ(test::fetches_of_lru(pages, 3), 5U);
  EXPECT_EQ(test::fetches_of_opt(pages, 3), 2U);
  EXPECT_EQ(test::fetches_of_lru(pages, 4), 3U);
  EXPECT_EQ(test::fetches_of_opt(pages, 4), 1U);
}

// The slow way: looks through all local pages for the one that is used again last.
std::size_t fetches_of_plain_opt(const Pages& trace, std::size_t local_max) {
  std::vector<std::uint32_t> local;
  std::set<std::uint32_t> seen;
  std::size_t fetches = 0;
  for (auto now = trace.begin(); now != trace.end(); ++now) {
    if (std::ranges::count(local, *now) != 0) continue;
    if (!seen.insert(*now).second) ++fetches;
    if (local.size() == local_max) {
      const auto next = [&](std::uint32_t page) { return std::find(now, trace.end(), page); };
      local.erase(std::ranges::max_element(local, {}, next));
    }
    local.push_back(*now);
  }
  return fetches;
}

TEST(PageTrace, OptIsTheSameAsThePlainOne) {
  test::Random random(test::seed());
  for (int round = 0; round < 50; ++round) {
    Pages trace(300);
    for (std::uint32_t& page : trace) page = static_cast<std::uint32_t>(test::between(random, 0, 19));
    const std::size_t local_max = test::between(random, 1, 12);
    ASSERT_EQ(test::fetches_of_opt(trace, local_max), fetches_of_plain_opt(trace, local_max));
    ASSERT_LE(test::fetches_of_opt(trace, local_max), test::fetches_of_lru(trace, local_max));
  }
}

// ---- Kernels ----

constexpr std::size_t mib = 1 << 20;

/// A kernel whose pages are never zeros when they leave: the pager would not fetch such pages.
struct Kernel {
  template <class Run>
  Kernel(const char* its_name, std::size_t its_bytes, Run run)
      : name(its_name), bytes(its_bytes), traced(run), paged(run) {}

  const char* name;
  std::size_t bytes;  // of its arrays
  std::function<std::uint64_t(test::TracedMemory&)> traced;
  std::function<std::uint64_t(test::ArrayMemory&)> paged;
};

// Otherwise gtest would print its bytes.
void PrintTo(const Kernel& kernel, std::ostream* to) { *to << kernel.name; }

constexpr std::size_t limit_for(const Kernel& kernel) { return kernel.bytes / 5 / page_bytes * page_bytes; }

// At the end of a stream, the pager has brought pages for its next step. Twice LRU's fetches cover that in the course
// of a kernel, but not for its last streams: they may have a slice each; where blocks come whole, one stream may have
// the rest of a block and 4 more.
constexpr std::size_t in_vain_max(std::size_t limit) {
  return limit < 32 * mib ? pager::Streams::streams_max * pager::slice_pages : 5 * block_pages;
}

struct Fetches {
  std::size_t lru;
  std::size_t opt;
};

void expect_few_fetches(const Kernel& kernel, test::Faults faults, std::uint64_t expected, const Fetches& bounds) {
  const std::size_t limit = limit_for(kernel);
  test::Paged paged(kernel.bytes, limit, {}, true, pager::Contents::zeros, 0, faults);
  test::ArrayMemory memory(paged.bytes());
  EXPECT_EQ(kernel.paged(memory), expected);

  const pager::Statistics statistics = paged.pager.statistics();
  const std::size_t fetched = statistics.bytes_in / page_bytes;
  const char* const way = faults == test::Faults::by_threads ? "by_threads" : "by_pager";
  const double ratio = static_cast<double>(fetched) / static_cast<double>(bounds.lru);
  std::printf("%-26s %-10s fetched %6zu, LRU %6zu, OPT %6zu: %.2f of LRU\n", kernel.name, way, fetched, bounds.lru,
              bounds.opt, ratio);
  testing::Test::RecordProperty(std::string("fetched_") + way, std::to_string(fetched));
  EXPECT_LE(fetched, 2 * bounds.lru + in_vain_max(limit)) << way;
  EXPECT_GE(fetched, bounds.opt) << way << ": the trace is not what the pager has seen";
  EXPECT_EQ(statistics.times_over_limit, 0U) << way;
  // The fault thread and a mover that bring pages at the same time may see the same room.
  EXPECT_LE(statistics.resident_peak_bytes, limit + pager::block_bytes) << way;
  EXPECT_TRUE(paged.failures().empty());
}

struct PagerTraces : test::NeedsPaging, testing::WithParamInterface<Kernel> {};

TEST_P(PagerTraces, FetchAtMostTwiceAsManyPagesAsLru) {
  const Kernel& kernel = GetParam();
  std::uint64_t expected = 0;
  Fetches bounds{};
  {
    test::TracedMemory memory(kernel.bytes);
    expected = kernel.traced(memory);
    const std::size_t local_max = limit_for(kernel) / page_bytes;
    bounds = {test::fetches_of_lru(memory.trace(), local_max), test::fetches_of_opt(memory.trace(), local_max)};
  }
  RecordProperty("lru", std::to_string(bounds.lru));
  RecordProperty("opt", std::to_string(bounds.opt));
  EXPECT_LE(bounds.opt, bounds.lru);
  for (const test::Faults faults : {test::Faults::by_threads, test::Faults::by_pager}) {
    expect_few_fetches(kernel, faults, expected, bounds);
  }
}

std::vector<Kernel> kernels() {
  const std::uint64_t seed = test::seed();
  return {
      {"RadixSort", 16 * mib, [=](auto& memory) { return test::radix_sort(memory, mib, seed); }},
      {"GroupBy", 12 * mib, [=](auto& memory) { return test::group_by(memory, mib / 64, mib / 2, seed); }},
      {"ColumnsOfShortRows", 16 * mib, [=](auto& memory) { return test::walk_columns(memory, 1024, 2048, 128, seed); }},
      {"ColumnsOfLongRows", 16 * mib, [=](auto& memory) { return test::walk_columns(memory, 256, 8192, 64, seed); }},
      {"Sort", 16 * mib, [=](auto& memory) { return test::sort_records(memory, mib / 4, seed); }},
      {"ZipfReads", 16 * mib, [=](auto& memory) { return test::zipf_reads(memory, mib / 4, 40'000, seed); }},
      {"Triad", 15 * mib, [=](auto& memory) { return test::triad(memory, 5 * mib / 64, 4, seed); }},
      // with room for whole blocks
      {"ColumnsOfLongRowsByBlocks", 160 * mib,
       [=](auto& memory) { return test::walk_columns(memory, 2560, 8192, 256, seed); }},
      {"ColumnsOfShortRowsByBlocks", 160 * mib,
       [=](auto& memory) { return test::walk_columns(memory, 10240, 2048, 256, seed); }},
      {"TriadByBlocks", 165 * mib, [=](auto& memory) { return test::triad(memory, 55 * mib / 64, 3, seed); }},
  };
}

INSTANTIATE_TEST_SUITE_P(Kernels, PagerTraces, testing::ValuesIn(kernels()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace tonari
