#include "base/clock.hpp"
#include "base/lock.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace tonari {
namespace {

TEST(BaseLock, LetsOneThreadInAtATime) {
  constexpr int threads = 8;  // more than most test machines' cores, so that waiters must yield to the holder
  constexpr int rounds = 5000;
  SpinLock lock;
  int count = 0;

  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        const std::lock_guard guard(lock);
        ++count;
      }
    });
  }
  for (auto& worker : workers) worker.join();

  EXPECT_EQ(count, threads * rounds);
}

TEST(BaseLock, TryReturnsWhetherItTookTheLock) {
  SpinLock lock;

  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());

  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(BaseClock, CountsNanosecondsAndNeverGoesBack) {
  const auto before = monotonic_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto after = monotonic_ns();

  EXPECT_GE(after - before, 10'000'000U);
  EXPECT_LT(after - before, 10'000'000'000U);
}

}  // namespace
}  // namespace tonari
