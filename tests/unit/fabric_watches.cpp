#include "fabric/watches.hpp"

#include <gtest/gtest.h>

namespace tonari::fabric {
namespace {

struct Condition final : Watched {
  [[nodiscard]] bool ready() const noexcept override { return is_true; }
  bool is_true = false;
};

TEST(Watches, WakesThreadsWhoseConditionsAreReady) {
  Watches watches;
  Condition first, second;
  Sleeper first_thread, second_thread;
  EXPECT_TRUE(watches.add(first, first_thread));
  EXPECT_TRUE(watches.add(second, second_thread));

  second.is_true = true;
  watches.wake_ready_if_any();

  EXPECT_EQ(first_thread.woken, 0u);
  EXPECT_EQ(second_thread.woken, 1u);
}

TEST(Watches, SayThatAConditionIsReadyAlready) {
  Watches watches;
  Condition condition;
  Sleeper thread;
  condition.is_true = true;
  EXPECT_FALSE(watches.add(condition, thread));
}

TEST(Watches, ForgetARemovedCondition) {
  Watches watches;
  Condition condition;
  Sleeper thread;
  ASSERT_TRUE(watches.add(condition, thread));
  watches.remove(condition);
  watches.remove(condition);

  condition.is_true = true;
  watches.wake_ready();

  EXPECT_EQ(thread.woken, 0u);
}

}  // namespace
}  // namespace tonari::fabric
