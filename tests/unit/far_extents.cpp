#include "far/preload/extents.hpp"

#include "../support/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

// Which ranges of a program's arena are in use, against a list of the owner of each page.
namespace tonari {
namespace {

using far::Address;
using far::block_bytes;
using far::Extents;
using far::page_bytes;
using far::Range;

constexpr Address start = 64 * block_bytes;
constexpr std::size_t mib = 1 << 20;

class FarExtents : public testing::Test {
 protected:
  void begin(std::size_t blocks, std::size_t entries = 4096) {
    arena = {start, blocks * block_bytes};
    table.resize(entries);
    extents = Extents(arena, table);
  }

  Range arena;
  std::vector<Extents::Entry> table;
  Extents extents;
};

TEST_F(FarExtents, AlignsLargeOnesToBlocksAndOthersToPages) {
  begin(64);

  EXPECT_EQ(extents.allocate(1, 1) % page_bytes, 0U);
  EXPECT_EQ(extents.allocate(block_bytes, 16) % block_bytes, 0U);
  EXPECT_EQ(extents.allocate(page_bytes, 8 * mib) % (8 * mib), 0U);
  EXPECT_EQ(extents.allocate(page_bytes, std::size_t{1} << 62), 0U);
}

TEST_F(FarExtents, FindsWhatContainsAnAddress) {
  begin(64);
  const Address at = extents.allocate(5 * page_bytes - 1, 1);

  EXPECT_EQ(extents.find(at + 5 * page_bytes - 1), (Range{at, 5 * page_bytes}));
  EXPECT_TRUE(extents.find(at + 5 * page_bytes).is_empty());
}

TEST_F(FarExtents, LeavesRoomBehindLargeOnesSoThatTheyGrow) {
  begin(64);
  const Address large = extents.allocate(4 * mib, 1);
  const Address other = extents.allocate(4 * mib, 1);
  ASSERT_EQ(other, large + 8 * mib);

  EXPECT_TRUE(extents.grow(large + 4 * mib, 4 * mib));
  EXPECT_FALSE(extents.grow(large + 8 * mib, page_bytes));
  EXPECT_EQ(extents.find(large), (Range{large, 8 * mib}));
}

TEST_F(FarExtents, UsesTheRoomsWhenNothingElseIsLeft) {
  begin(8);
  ASSERT_NE(extents.allocate(4 * mib, 1), 0U);

  EXPECT_NE(extents.allocate(12 * mib, 1), 0U);
  EXPECT_EQ(extents.allocate(page_bytes, 1), 0U);
}

TEST_F(FarExtents, FreesThePartInTheMiddle) {
  begin(8);
  const Address at = extents.allocate(10 * page_bytes, 1);

  EXPECT_TRUE(extents.free({at + 3 * page_bytes, 4 * page_bytes}));

  EXPECT_EQ(extents.find(at), (Range{at, 3 * page_bytes}));
  EXPECT_EQ(extents.find(at + 7 * page_bytes), (Range{at + 7 * page_bytes, 3 * page_bytes}));
  EXPECT_EQ(extents.first_free({at, 10 * page_bytes}), (Range{at + 3 * page_bytes, 4 * page_bytes}));
}

TEST_F(FarExtents, MarksStayWithBothPartsOfASplit) {
  begin(8);
  const Address at = extents.allocate(4 * page_bytes, 1);
  extents.mark({at + page_bytes, page_bytes}, Extents::was_protected);

  ASSERT_TRUE(extents.split(at + 2 * page_bytes));

  EXPECT_EQ(extents.find(at).marks, Extents::was_protected);
  EXPECT_EQ(extents.find(at + 3 * page_bytes).marks, Extents::was_protected);
}

TEST_F(FarExtents, AFullTableRefusesWithoutHarm) {
  begin(8, 2);
  const Address first = extents.allocate(3 * page_bytes, 1);
  ASSERT_NE(extents.allocate(page_bytes, 1), 0U);

  EXPECT_EQ(extents.allocate(page_bytes, 1), 0U);
  EXPECT_FALSE(extents.free({first + page_bytes, page_bytes}));
  EXPECT_EQ(extents.find(first), (Range{first, 3 * page_bytes}));
}

// Random operations against the owner of each page.
class Model {
 public:
  explicit Model(std::size_t pages) : owners_(pages, 0) {}

  [[nodiscard]] bool is_free(Range range) const {
    return std::all_of(at(range.start), at(range.end()), [](int owner) { return owner == 0; });
  }
  void set(Range range, int owner) { std::fill(at(range.start), at(range.end()), owner); }
  int add(Range range) {
    set(range, ++last_);
    return last_;
  }
  [[nodiscard]] int owner(Address address) const { return *at(address); }
  [[nodiscard]] Range extent(Address address) const {
    const int owner = this->owner(address);
    if (owner == 0) return {};
    auto first = at(address);
    auto last = first;
    while (first != owners_.begin() && *(first - 1) == owner) --first;
    while (last != owners_.end() && *last == owner) ++last;
    return {start + static_cast<Address>(first - owners_.begin()) * page_bytes,
            static_cast<std::size_t>(last - first) * page_bytes};
  }
  void renumber(Range range) {
    if (!range.is_empty()) add(range);
  }

 private:
  [[nodiscard]] std::vector<int>::const_iterator at(Address address) const {
    return owners_.begin() + static_cast<std::ptrdiff_t>((address - start) / page_bytes);
  }
  [[nodiscard]] std::vector<int>::iterator at(Address address) {
    return owners_.begin() + static_cast<std::ptrdiff_t>((address - start) / page_bytes);
  }

  std::vector<int> owners_;
  int last_ = 0;
};

TEST_F(FarExtents, AgreesWithAListOfOwnersWhateverIsDone) {
  SCOPED_TRACE(testing::Message() << "TONARI_SEED=" << test::seed());
  test::Random random(test::seed());
  for (int round = 0; round < test::rounds(20); ++round) {
    begin(test::between(random, 4, 40));
    Model model(arena.bytes / page_bytes);
    const auto place = [&] { return start + test::between(random, 0, arena.bytes / page_bytes - 1) * page_bytes; };
    const auto range = [&] { return Range{place(), test::between(random, 1, 1500) * page_bytes}.cut_to(arena); };

    for (int step = 0; step < 600; ++step) {
      const unsigned what = static_cast<unsigned>(test::between(random, 0, 99));
      if (what < 40) {
        const std::size_t bytes =
            test::between(random, 1, test::chance(random, 30) ? 3 * block_bytes : 64 * page_bytes);
        const std::size_t alignment = std::size_t{1} << test::between(random, 0, 23);
        const Address at = extents.allocate(bytes, alignment);
        if (at == 0) {  // then there is no such place
          const std::size_t step_bytes = std::max(alignment, bytes >= block_bytes ? block_bytes : page_bytes);
          for (Address each = (start + step_bytes - 1) / step_bytes * step_bytes;
               each + far::to_whole_pages(bytes) <= arena.end(); each += step_bytes) {
            ASSERT_FALSE(model.is_free({each, far::to_whole_pages(bytes)}));
          }
          continue;
        }
        const Range got{at, far::to_whole_pages(bytes)};
        ASSERT_EQ(at % alignment, 0U);
        ASSERT_EQ(got.cut_to(arena), got);
        ASSERT_TRUE(model.is_free(got));
        model.add(got);
      } else if (what < 50) {
        const Range at = range();
        const bool was_free = model.is_free(at);
        ASSERT_EQ(extents.allocate_at(at), was_free);
        if (was_free) model.add(at);
      } else if (what < 60) {
        const Range extent = model.extent(place());
        if (extent.is_empty()) continue;
        const Range more = Range{extent.end(), test::between(random, 1, 600) * page_bytes};
        const bool has_room = more.end() <= arena.end() && model.is_free(more);
        ASSERT_EQ(extents.grow(extent.end(), more.bytes), has_room);
        if (has_room) model.set(more, model.owner(extent.start));
      } else if (what < 90) {
        const Range extent = model.extent(place());
        if (extent.is_empty()) continue;
        const Range part = test::chance(random, 60) ? extent : extent.cut_to(range());
        if (part.is_empty()) continue;
        ASSERT_TRUE(extents.free(part));
        model.set(part, 0);
        model.renumber({part.end(), extent.end() - part.end()});
      } else if (what < 95) {
        const Address at = place();
        const Range extent = model.extent(at);
        ASSERT_TRUE(extents.split(at));
        if (!extent.is_empty() && extent.start != at) model.renumber({at, extent.end() - at});
      }
      const Address at = place();
      ASSERT_EQ(static_cast<Range>(extents.find(at)), model.extent(at));
      const Range part = range();
      const Range used = extents.first_used(part);
      const Range before{part.start, (used.is_empty() ? part.end() : used.start) - part.start};
      ASSERT_TRUE(model.is_free(before));
      if (!used.is_empty()) {
        ASSERT_EQ(used, model.extent(used.start).cut_to(part));
      }
    }
  }
}

}  // namespace
}  // namespace tonari
