#include "fabric/progress_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

namespace tonari::fabric {
namespace {

TEST(ProgressLock, IsHeldByOneThreadAtATime) {
  std::atomic<std::uint32_t> word{0};
  ProgressLock lock(word);
  EXPECT_FALSE(lock.is_held());
  EXPECT_TRUE(lock.try_take());
  EXPECT_TRUE(ProgressLock::is_held(word));
  EXPECT_FALSE(lock.try_take());

  lock.drop(true);
  EXPECT_FALSE(lock.is_held());
  EXPECT_TRUE(lock.try_take());
}

TEST(ProgressLock, IsPassedOnByALeavingHolderToTheThreadThatWaitsLongest) {
  std::atomic<std::uint32_t> word{0};
  ProgressLock lock(word);
  ASSERT_TRUE(lock.try_take());
  ProgressLock::SleeperRegistration first(lock);
  ProgressLock::SleeperRegistration second(lock);
  ASSERT_TRUE(first.is_held());

  lock.drop(false);
  EXPECT_EQ(first.sleeper().woken, 0u);

  ASSERT_TRUE(lock.try_take());
  lock.drop(true);
  EXPECT_EQ(first.sleeper().woken, 1u);
  EXPECT_EQ(second.sleeper().woken, 0u);

  lock.pass_on_if_free();  // the first thread's wait is over: it does not need the lock
  EXPECT_EQ(second.sleeper().woken, 1u);
}

TEST(ProgressLock, TellsAThreadThatNoHolderWouldWakeIt) {
  std::atomic<std::uint32_t> word{0};
  ProgressLock lock(word);
  const ProgressLock::SleeperRegistration registration(lock);
  EXPECT_FALSE(registration.is_held());
}

TEST(ProgressLock, CountsNoThreadThatHasStoppedSleeping) {
  std::atomic<std::uint32_t> word{0};
  ProgressLock lock(word);
  ASSERT_TRUE(lock.try_take());
  Sleeper* sleeper = nullptr;
  {
    ProgressLock::SleeperRegistration registration(lock);
    sleeper = &registration.sleeper();
  }

  lock.drop(true);
  EXPECT_EQ(word, 0u);
  EXPECT_EQ(sleeper->woken, 0u);
}

}  // namespace
}  // namespace tonari::fabric
