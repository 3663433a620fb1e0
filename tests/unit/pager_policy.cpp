#include "pager/policy.hpp"

#include "../support/random.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <vector>

// Tests of the choice of victims. Blocks are numbers here, in a small simulated cache that follows the policy.
namespace tonari {
namespace {

using pager::Policy;
using pager::PolicyEntry;

class Cache {
 public:
  Cache(std::size_t blocks, std::size_t room, std::size_t beside_max)
      : entries_(blocks), room_(room), beside_max_(beside_max) {}

  /// Returns true if the block was resident or in a victim buffer.
  bool touch(std::size_t block) {
    PolicyEntry& entry = entries_[block];
    if (here_.contains(block)) return true;
    const bool hit = std::erase(beside_, block) != 0;
    here_.insert(block);
    if (hit) {
      policy_.wanted_again(entry);
    } else {
      policy_.came(entry);
    }
    while (here_.size() + beside_.size() > room_) make_room();
    return hit;
  }
  void pass(std::size_t block) { policy_.passed(entries_[block]); }
  [[nodiscard]] bool has(std::size_t block) const { return here_.contains(block); }

 private:
  void make_room() {
    if (beside_.size() == beside_max_ || here_.empty()) {
      const std::size_t gone = beside_.front();
      beside_.pop_front();
      policy_.went(entries_[gone]);
      return;
    }
    PolicyEntry* const victim = policy_.take_victim();
    ASSERT_NE(victim, nullptr);
    const auto block = static_cast<std::size_t>(victim - entries_.data());
    ASSERT_EQ(here_.erase(block), 1U);
    if (victim->came_from == PolicyEntry::Queue::passed) {
      policy_.went(*victim);
    } else {
      beside_.push_back(block);
    }
  }

  std::vector<PolicyEntry> entries_;
  Policy policy_;
  std::size_t room_;
  std::size_t beside_max_;
  std::set<std::size_t> here_;
  std::deque<std::size_t> beside_;
};

TEST(PagerPolicy, OftenUsedBlocksSurviveAScan) {
  Cache cache(10'000, 100, 10);
  test::Random random(test::seed());
  for (int i = 0; i < 20'000; ++i) cache.touch(test::between(random, 0, 59));

  for (std::size_t block = 1000; block < 9000; ++block) {
    cache.touch(block);
    if (block % 4 == 0) cache.touch(test::between(random, 0, 59));
  }

  std::size_t kept = 0;
  for (std::size_t block = 0; block < 60; ++block) kept += cache.has(block) ? 1 : 0;
  EXPECT_GT(kept, 40U);
}

TEST(PagerPolicy, BlocksThatAStreamHasPassedAreEvictedFirst) {
  Cache cache(100, 20, 2);
  for (std::size_t block = 0; block < 18; ++block) cache.touch(block);
  cache.pass(15);
  cache.pass(9);

  for (std::size_t block = 50; block < 54; ++block) cache.touch(block);

  EXPECT_FALSE(cache.has(15));
  EXPECT_FALSE(cache.has(9));
}

TEST(PagerPolicy, ACyclicScanHitsTheBlocksPassedLongestAgo) {
  constexpr std::size_t room = 50;
  constexpr std::size_t blocks = 100;
  Cache cache(blocks, room, 2);
  std::size_t hits = 0;
  for (std::size_t i = 0; i < 10 * blocks; ++i) {
    if (cache.has(i % blocks)) ++hits;
    cache.touch(i % blocks);
    cache.pass(i % blocks);
  }
  EXPECT_GT(hits, 10 * blocks * (room - 20) / blocks) << "evicting the oldest block first would give no hits at all";
}

TEST(PagerPolicy, RecentlyPassedBlocksAreSpared) {
  Policy policy;
  std::vector<PolicyEntry> entries(20);
  for (PolicyEntry& each : entries) {
    policy.came(each);
    policy.passed(each);
  }
  for (std::size_t expected = 11; expected > 6; --expected) EXPECT_EQ(policy.take_victim(), &entries[expected]);
}

TEST(PagerPolicy, ABlockThatComesBackSoonIsProven) {
  Policy policy;
  std::vector<PolicyEntry> entries(3);
  for (PolicyEntry& each : entries) policy.came(each);
  PolicyEntry* const victim = policy.take_victim();
  ASSERT_EQ(victim, entries.data());
  policy.went(*victim);
  EXPECT_EQ(victim->queue, PolicyEntry::Queue::ghost);

  policy.came(*victim);

  EXPECT_EQ(victim->queue, PolicyEntry::Queue::proven);
  EXPECT_EQ(policy.take_victim(), &entries[1]) << "the proven block went before a recent one";
}

TEST(PagerPolicy, ABlockThatCannotGoDoesNotKeepOthersFromGoing) {
  Policy policy;
  std::vector<PolicyEntry> entries(9);
  for (PolicyEntry& each : entries) policy.came(each);
  for (std::size_t i = 0; i < 8; ++i) policy.went(*policy.take_victim());
  for (std::size_t i = 0; i < 8; ++i) policy.came(entries[i]);
  ASSERT_EQ(entries[0].queue, PolicyEntry::Queue::proven);
  PolicyEntry& held = entries[8];
  ASSERT_EQ(policy.take_victim(), &held);
  policy.could_not_go(held);

  EXPECT_EQ(policy.take_victim(), entries.data());
  EXPECT_EQ(held.queue, PolicyEntry::Queue::recent);
}

TEST(PagerPolicy, ABlockThatWasNoVictimDoesNotChangeTheNextOne) {
  Policy policy;
  std::vector<PolicyEntry> entries(3);
  policy.came(entries[0]);
  policy.went(*policy.take_victim());
  for (PolicyEntry& each : entries) policy.came(each);
  ASSERT_EQ(entries[0].queue, PolicyEntry::Queue::proven);

  policy.could_not_go(entries[0]);  // it has been taken from the recent ones before
  EXPECT_EQ(policy.take_victim(), &entries[1]) << "recent ones are more than a tenth";
}

TEST(PagerPolicy, ForgettingABlockLeavesTheOthersAlone) {
  Policy policy;
  std::vector<PolicyEntry> entries(5);
  for (PolicyEntry& each : entries) policy.came(each);
  policy.passed(entries[4]);

  policy.forget(entries[0]);
  policy.forget(entries[2]);
  policy.forget(entries[2]);

  EXPECT_EQ(policy.size(), 3U);
  EXPECT_EQ(policy.take_victim(), &entries[4]);
  EXPECT_EQ(policy.take_victim(), &entries[1]);
  EXPECT_EQ(policy.take_victim(), &entries[3]);
  EXPECT_EQ(policy.take_victim(), nullptr);
  policy.could_not_go(entries[3]);
  EXPECT_EQ(policy.take_victim(), &entries[3]);
}

}  // namespace
}  // namespace tonari
