#include "base/edit_distance.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tonari {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "run"), 3U);
  EXPECT_EQ(edit_distance("run", "rn"), 1U);
  EXPECT_EQ(edit_distance("run", "ruin"), 1U);
  EXPECT_EQ(edit_distance("run", "ran"), 1U);
  EXPECT_EQ(edit_distance("rnu", "run"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("pignpogn", "pingpong"), 2U);
}

constexpr std::array<std::string_view, 5> known{"run", "far", "status", "lu", "pingpong"};

TEST(LikelyMeant, IsTheNearestWord) {
  EXPECT_EQ(likely_meant("rnu", known), "run");
  EXPECT_EQ(likely_meant("stat", known), "status");
  EXPECT_EQ(likely_meant("pingpng", known), "pingpong");
}

TEST(LikelyMeant, IsEmptyWhenNoWordIsCloseEnough) {
  EXPECT_EQ(likely_meant("walk", known), "");
  EXPECT_EQ(likely_meant("foo", known), "");
  EXPECT_EQ(likely_meant("l", known), "") << "a difference of one letter means nothing in a word of two letters";
  EXPECT_EQ(likely_meant("run", {}), "");
}

}  // namespace
}  // namespace tonari
