#include "far/preload/extents.hpp"

#include "../support/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

// Tests of the table of used ranges of a program's far memory, against a list of the owner of each page.
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

TEST_F(FarExtents, AlignsLargeRangesToBlocksAndOthersToPages) {
  begin(64);

  EXPECT_EQ(extents.allocate(1, 1) % page_bytes, 0U);
  EXPECT_EQ(extents.allocate(block_bytes, 16) % block_bytes, 0U);
  EXPECT_EQ(extents.allocate(page_bytes, 8 * mib) % (8 * mib), 0U);
  EXPECT_EQ(extents.allocate(page_bytes, std::size_t{1} << 62), 0U);
}

TEST_F(FarExtents, FindsTheRangeThatContainsAnAddress) {
  begin(64);
  const Address at = extents.allocate(5 * page_bytes - 1, 1);

  EXPECT_EQ(extents.find(at + 5 * page_bytes - 1), (Range{at, 5 * page_bytes}));
  EXPECT_TRUE(extents.find(at + 5 * page_bytes).is_empty());
}

TEST_F(FarExtents, LeavesRoomBehindLargeRangesForGrowth) {
  begin(64);
  const Address large = extents.allocate(4 * mib, 1);
  const Address other = extents.allocate(4 * mib, 1);
  ASSERT_EQ(other, large + 8 * mib);

  EXPECT_TRUE(extents.grow(large + 4 * mib, 4 * mib));
  EXPECT_FALSE(extents.grow(large + 8 * mib, page_bytes));
  EXPECT_EQ(extents.find(large), (Range{large, 8 * mib}));
}

TEST_F(FarExtents, UsesTheRoomForGrowthWhenNothingElseIsLeft) {
  begin(8);
  ASSERT_NE(extents.allocate(4 * mib, 1), 0U);

  EXPECT_NE(extents.allocate(12 * mib, 1), 0U);
  EXPECT_EQ(extents.allocate(page_bytes, 1), 0U);
}

TEST_F(FarExtents, FreesTheMiddleOfARange) {
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

TEST_F(FarExtents, OnlyAPartOfAReservationIsOpened) {
  begin(64);
  const Address at = extents.allocate(8 * mib, 1, Extents::is_reserved | Extents::was_protected);
  const Range part{at + page_bytes, 2 * page_bytes};

  ASSERT_TRUE(extents.separate(part));
  extents.unmark(part, Extents::is_reserved);

  EXPECT_EQ(extents.find(at).marks, Extents::is_reserved | Extents::was_protected);
  EXPECT_EQ(extents.find(part.start).marks, Extents::was_protected);
  EXPECT_EQ(static_cast<Range>(extents.find(part.start)), part);
  EXPECT_EQ(extents.find(part.end()).marks, Extents::is_reserved | Extents::was_protected);
  EXPECT_EQ(extents.find(part.end()).end(), at + 8 * mib);
}

TEST_F(FarExtents, ReservationsLeaveHalfOfTheArenaFree) {
  begin(8);
  const Address first = extents.allocate(8 * mib, 1, Extents::is_reserved);
  ASSERT_NE(first, 0U);

  EXPECT_EQ(extents.allocate(page_bytes, 1, Extents::is_reserved), 0U);
  EXPECT_FALSE(extents.allocate_at({first + 8 * mib, page_bytes}, Extents::is_reserved));
  EXPECT_EQ(extents.allocate(8 * mib, 1), first + 8 * mib) << "no room is left after a reservation";
  EXPECT_TRUE(extents.free({first, 4 * mib}));
  EXPECT_TRUE(extents.free({first + 8 * mib, 8 * mib}));
  EXPECT_TRUE(extents.allocate_at({first, 4 * mib}, Extents::is_reserved));
}

TEST_F(FarExtents, RefusesToFreeUnusedPages) {
  begin(8);
  const Address at = extents.allocate(4 * page_bytes, 1);

  EXPECT_FALSE(extents.free({at + 3 * page_bytes, 2 * page_bytes}));
  EXPECT_FALSE(extents.free({at + 4 * page_bytes, page_bytes}));
  EXPECT_TRUE(extents.free({at, 4 * page_bytes}));
  EXPECT_FALSE(extents.free({at, 4 * page_bytes}));
}

TEST_F(FarExtents, AFullTableRefusesAndStaysUnchanged) {
  begin(8, 2);
  const Address first = extents.allocate(3 * page_bytes, 1);
  ASSERT_NE(extents.allocate(page_bytes, 1), 0U);

  EXPECT_EQ(extents.allocate(page_bytes, 1), 0U);
  EXPECT_FALSE(extents.free({first + page_bytes, page_bytes}));
  EXPECT_EQ(extents.find(first), (Range{first, 3 * page_bytes}));
}

// The owner of each page; 0 means that the page is free.
class Model {
 public:
  explicit Model(Range arena) : arena_(arena), owners_(arena.bytes / page_bytes, 0) {}

  [[nodiscard]] bool is_free(Range range) const {
    return std::all_of(at(range.start), at(range.end()), [](int owner) { return owner == 0; });
  }
  [[nodiscard]] bool has_place(std::size_t bytes, std::size_t alignment) const {
    const Range first{(arena_.start + alignment - 1) / alignment * alignment, far::to_whole_pages(bytes)};
    for (Range each = first; each.end() <= arena_.end(); each.start += alignment) {
      if (is_free(each)) return true;
    }
    return false;
  }
  [[nodiscard]] Range extent(Address address) const {
    const int owner = *at(address);
    if (owner == 0) return {};
    auto first = at(address);
    auto last = first;
    while (first != owners_.begin() && *(first - 1) == owner) --first;
    while (last != owners_.end() && *last == owner) ++last;
    return {arena_.start + static_cast<Address>(first - owners_.begin()) * page_bytes,
            static_cast<std::size_t>(last - first) * page_bytes};
  }

  void add(Range range) { set(range, ++last_); }
  void free(Range range) { set(range, 0); }
  void grow(Range extent, Range more) { set(more, *at(extent.start)); }

 private:
  void set(Range range, int owner) {
    std::fill_n(owners_.begin() + index(range.start), range.bytes / page_bytes, owner);
  }
  [[nodiscard]] std::ptrdiff_t index(Address address) const {
    return static_cast<std::ptrdiff_t>((address - arena_.start) / page_bytes);
  }
  [[nodiscard]] std::vector<int>::const_iterator at(Address address) const { return owners_.begin() + index(address); }

  Range arena_;
  std::vector<int> owners_;
  int last_ = 0;
};

class FarExtentsModel : public FarExtents {
 protected:
  void allocate() {
    const std::size_t bytes = test::between(random, 1, test::chance(random, 30) ? 3 * block_bytes : 64 * page_bytes);
    const std::size_t wanted = std::size_t{1} << test::between(random, 0, 23);
    const std::size_t alignment = std::max(wanted, bytes >= block_bytes ? block_bytes : page_bytes);
    const Range got{extents.allocate(bytes, wanted), far::to_whole_pages(bytes)};
    ASSERT_EQ(got.start != 0, model.has_place(bytes, alignment));
    if (got.start == 0) return;
    ASSERT_EQ(got.start % alignment, 0U);
    ASSERT_EQ(got.cut_to(arena), got);
    ASSERT_TRUE(model.is_free(got));
    model.add(got);
  }
  void allocate_at() {
    const Range range = some_range();
    ASSERT_EQ(extents.allocate_at(range), model.is_free(range));
    if (model.is_free(range)) model.add(range);
  }
  void grow() {
    const Range extent = model.extent(some_place());
    if (extent.is_empty()) return;
    const Range more{extent.end(), test::between(random, 1, 600) * page_bytes};
    const bool has_room = more.end() <= arena.end() && model.is_free(more);
    ASSERT_EQ(extents.grow(extent.end(), more.bytes), has_room);
    if (has_room) model.grow(extent, more);
  }
  void free() {
    const Range extent = model.extent(some_place());
    const Range part = test::chance(random, 60) ? extent : extent.cut_to(some_range());
    if (part.is_empty()) return;
    ASSERT_TRUE(extents.free(part));
    model.free(part);
    model.add({part.end(), extent.end() - part.end()});
  }
  void split() {
    const Address at = some_place();
    const Range extent = model.extent(at);
    ASSERT_TRUE(extents.split(at));
    if (!extent.is_empty() && extent.start != at) model.add({at, extent.end() - at});
  }
  void compare() {
    const Address at = some_place();
    ASSERT_EQ(static_cast<Range>(extents.find(at)), model.extent(at));
    const Range range = some_range();
    const Range used = extents.first_used(range);
    const Address free_end = used.is_empty() ? range.end() : used.start;
    ASSERT_TRUE(model.is_free({range.start, free_end - range.start}));
    ASSERT_TRUE(model.is_free(extents.first_free(range)));
    if (!used.is_empty()) {
      ASSERT_EQ(used, model.extent(used.start).cut_to(range));
    }
  }
  void step() {
    const std::size_t what = test::between(random, 0, 99);
    if (what < 40) return allocate();
    if (what < 50) return allocate_at();
    if (what < 60) return grow();
    return what < 95 ? free() : split();
  }

  Address some_place() { return start + test::between(random, 0, arena.bytes / page_bytes - 1) * page_bytes; }
  Range some_range() { return Range{some_place(), test::between(random, 1, 1500) * page_bytes}.cut_to(arena); }

  test::Random random{test::seed()};
  Model model{{}};
};

TEST_F(FarExtentsModel, AgreesWithAListOfOwnersUnderRandomUse) {
  for (int round = 0; round < test::rounds(20); ++round) {
    begin(test::between(random, 4, 40));
    model = Model(arena);
    for (int i = 0; i < 600; ++i) {
      ASSERT_NO_FATAL_FAILURE(step());
      ASSERT_NO_FATAL_FAILURE(compare());
    }
  }
}

}  // namespace
}  // namespace tonari
