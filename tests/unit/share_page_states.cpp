#include "share/array/page_states.hpp"

#include <gtest/gtest.h>

namespace tonari::share {
namespace {

constexpr Mask pages = bits(3, 2);
constexpr Mask one = bit(3);

TEST(PageStates, CopyGoesFromAbsentToDirtyAndBack) {
  PageStates states;
  EXPECT_EQ(states.of(3), PageState::absent);
  EXPECT_EQ((states.fetchable() & pages), pages);
  states.start_fetch(pages);
  EXPECT_EQ(states.of(3), PageState::fetching);
  EXPECT_EQ((states.fetchable() & pages), Mask{0});
  EXPECT_EQ(states.end_fetch(pages), Mask{0});
  states.map(pages, Touch::read);
  EXPECT_EQ(states.of(3), PageState::clean);
  states.mark_dirty(one);
  states.allow_writes(one);
  EXPECT_EQ(states.of(3), PageState::dirty);
  EXPECT_EQ(states.of(4), PageState::clean);
  states.catch_writes(one);
  states.mark_told(one);
  EXPECT_EQ(states.of(3), PageState::clean);
  states.unmap(one);
  EXPECT_EQ(states.of(3), PageState::absent);
  states.suspend(one);
  EXPECT_EQ(states.of(3), PageState::suspended);
  EXPECT_EQ((states.fetchable() & one), Mask{0});
  states.end_suspension(one);
  EXPECT_EQ(states.of(3), PageState::absent);
}

TEST(PageStates, WritablePageThatIsNotDirtyIsUntracked) {
  PageStates states;
  states.become_home(pages);
  states.map(pages, Touch::write);
  EXPECT_EQ(states.of(3), PageState::untracked);
  EXPECT_EQ(states.untracked(), pages);
  states.presume_dirty(one);
  EXPECT_EQ(states.of(3), PageState::dirty);
  EXPECT_EQ(states.presumed_dirty(), one);
  states.mark_dirty(one);  // a write was noticed
  EXPECT_EQ(states.presumed_dirty(), Mask{0});
}

TEST(PageStates, FetchForgetsEarlierNoticesAndCanBeOvertaken) {
  PageStates states;
  states.mark_stale(pages);
  states.start_fetch(one);
  EXPECT_EQ(states.stale(), bit(4));
  states.overtake(pages);
  EXPECT_EQ(states.overtaken(), one);
  EXPECT_EQ(states.end_fetch(pages), Mask{0});
  EXPECT_EQ(states.overtaken(), Mask{0});
}

TEST(PageStates, RenewedCopyStaysMappedUntilTheFetchEnds) {
  PageStates states;
  states.map(pages, Touch::read);
  states.start_renewal(one);
  EXPECT_EQ(states.of(3), PageState::fetching);
  EXPECT_EQ((states.mapped() & one), one);
  EXPECT_EQ(states.end_fetch(pages), one);
  EXPECT_EQ(states.of(3), PageState::clean);
}

TEST(PageStates, PageIsMigratoryAfterWritesInTwoTurnsInARow) {
  PageStates states;
  states.note_written(one);
  EXPECT_EQ(states.end_turn(pages), Mask{0});
  states.note_written(one);
  EXPECT_EQ(states.end_turn(pages), one);
  EXPECT_EQ(states.end_turn(pages), Mask{0});  // a turn without a write
  states.note_written(one);
  EXPECT_EQ(states.end_turn(pages), Mask{0});
}

TEST(PageStates, AcquireLeavesPagesInAMulticastAlone) {
  PageStates states;
  states.map(pages, Touch::write);
  states.mark_dirty(one);
  states.start_multicast(pages);
  states.mark_stale(bits(3, 3));
  EXPECT_EQ(states.take_stale(), bit(5));
  EXPECT_EQ(states.stale(), Mask{0});
  EXPECT_EQ(states.end_multicast(pages), one);
  EXPECT_EQ(states.in_multicast(), Mask{0});
}

}  // namespace
}  // namespace tonari::share
