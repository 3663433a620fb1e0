#include <tonari/job.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace tonari {
namespace {

TEST(Group, FindsEachRankWhereItIs) {
  const Group group{{JobRank{7}, JobRank{0}, JobRank{3}}};

  EXPECT_EQ(group.size(), 3);
  for (int position = 0; position < 3; ++position) EXPECT_EQ(group.position(group.at(Rank{position})), Rank{position});
}

TEST(Group, FindsNoRankThatItDoesNotHold) {
  const Group group{{JobRank{7}, JobRank{0}, JobRank{3}}};

  for (const int stranger : {1, 2, 6, 8, 1'000'000, -1}) EXPECT_FALSE(group.position(JobRank{stranger})) << stranger;
}

TEST(Group, FirstHoldsRanksInOrder) {
  EXPECT_EQ(Group::first(4).ranks(), (std::vector{JobRank{0}, JobRank{1}, JobRank{2}, JobRank{3}}));
  EXPECT_EQ(Group::first(0).size(), 0);
  EXPECT_FALSE(Group{}.position(JobRank{0}));
}

TEST(Group, RefusesRepeatedAndNegativeRanks) {
  EXPECT_THROW(Group({JobRank{1}, JobRank{2}, JobRank{1}}), std::invalid_argument);
  EXPECT_THROW(Group({JobRank{1}, JobRank{-2}}), std::invalid_argument);
  EXPECT_THROW((void)Group::first(-1), std::invalid_argument);
}

}  // namespace
}  // namespace tonari
