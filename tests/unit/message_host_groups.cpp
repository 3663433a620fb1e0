#include "message/host_groups.hpp"

#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace tonari::message {
namespace {

std::vector<std::size_t> groups_at_random(test::Random& random, int ranks, std::size_t most) {
  std::map<std::size_t, std::size_t> number_of;
  std::vector<std::size_t> group_of;
  for (int rank = 0; rank < ranks; ++rank) {
    group_of.push_back(number_of.try_emplace(test::between(random, 1, most), number_of.size()).first->second);
  }
  return group_of;
}

TEST(HostGroups, ContainEachRankOnceAndInOrder) {
  const HostGroups groups({0, 1, 0, 2, 1, 0});
  ASSERT_EQ(groups.count(), 3U);
  EXPECT_TRUE(std::ranges::equal(groups.members(0), std::vector{0, 2, 5}));
  EXPECT_TRUE(std::ranges::equal(groups.members(1), std::vector{1, 4}));
  EXPECT_TRUE(std::ranges::equal(groups.members(2), std::vector{3}));
  EXPECT_EQ(groups.group_of(4), 1U);
  EXPECT_FALSE(groups.in_order());
  EXPECT_TRUE(HostGroups({0, 0, 1, 2, 2}).in_order());
}

// Returns the ranks of the subtree of a rank, itself first, in the order in which its children bring them.
std::vector<int> below(const std::map<int, Tree>& trees, int rank) {
  std::vector<int> all{rank};
  for (const int child : trees.at(rank).children) {
    const auto theirs = below(trees, child);
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  return all;
}

TEST(HostGroups, ATreeReachesAllRanksAndEntersEachHostOnce) {
  test::Random random(test::seed());
  for (int trial = 0; trial < 500; ++trial) {
    const auto ranks = static_cast<int>(test::between(random, 1, 20));
    const HostGroups groups(groups_at_random(random, ranks, test::between(random, 1, 6)));
    const auto root = static_cast<int>(test::between(random, 0, static_cast<std::size_t>(ranks) - 1));
    std::map<int, Tree> trees;
    std::size_t crossings = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Tree& tree = trees.emplace(rank, Tree::of_all(groups, rank, root)).first->second;
      if (tree.parent >= 0 && groups.group_of(tree.parent) != groups.group_of(rank)) ++crossings;
    }

    auto reached = below(trees, root);
    EXPECT_EQ(crossings, groups.count() - 1);
    for (const auto& [rank, tree] : trees) {
      for (const int child : tree.children) EXPECT_EQ(trees.at(child).parent, rank);
    }
    EXPECT_TRUE(root != 0 || !groups.in_order() || std::ranges::is_sorted(reached));
    EXPECT_EQ(reached.size(), static_cast<std::size_t>(ranks));
    EXPECT_EQ(std::set<int>(reached.begin(), reached.end()).size(), static_cast<std::size_t>(ranks));
  }
}

TEST(HostGroups, ATreeOfOneGroupHasItsMembersInOrder) {
  const HostGroups groups({0, 1, 1, 0, 1, 1, 1, 0});
  std::map<int, Tree> trees;
  for (int rank = 0; rank < 8; ++rank) trees.emplace(rank, Tree::of_group(groups, rank));
  EXPECT_EQ(below(trees, 0), (std::vector{0, 3, 7}));
  EXPECT_EQ(below(trees, 1), (std::vector{1, 2, 4, 5, 6}));
  EXPECT_EQ(trees.at(0).parent, -1);
  EXPECT_EQ(trees.at(1).parent, -1);
}

}  // namespace
}  // namespace tonari::message
