#include <tonari/job.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace tonari {
namespace {

TEST(Group, FindsEachRankWhereItIs) {
  const Group group{{7, 0, 3}};

  EXPECT_EQ(group.size(), 3);
  for (int position = 0; position < 3; ++position) EXPECT_EQ(group.position(group.at(position)), position);
}

TEST(Group, AnswersMinusOneForRanksThatItDoesNotHold) {
  const Group group{{7, 0, 3}};

  for (const int stranger : {1, 2, 6, 8, 1'000'000, -1}) EXPECT_EQ(group.position(stranger), -1) << stranger;
}

TEST(Group, FirstHoldsRanksInOrder) {
  EXPECT_EQ(Group::first(4).ranks(), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(Group::first(0).size(), 0);
  EXPECT_EQ(Group{}.position(0), -1);
}

TEST(Group, RefusesRepeatedAndNegativeRanks) {
  EXPECT_THROW(Group({1, 2, 1}), std::invalid_argument);
  EXPECT_THROW(Group({1, -2}), std::invalid_argument);
  EXPECT_THROW((void)Group::first(-1), std::invalid_argument);
}

}  // namespace
}  // namespace tonari
