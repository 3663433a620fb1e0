#include "../support/random.hpp"
#include "base/clock.hpp"
#include "base/futex.hpp"
#include "window/locks/lock_algorithm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

// Tests the lock algorithm step by step in one thread, and then with concurrent threads.
namespace tonari::window {
namespace {

constexpr int ranks_max = 16;

/// The memory of a lock, and its ranks with their view of each other.
struct House {
  struct Neighbours {
    House* house;
    [[nodiscard]] bool alive(int rank) const noexcept {
      if (int looked_at = rank; house->dies_when_looked_at.compare_exchange_strong(looked_at, -1)) {
        house->bury(rank);
        return true;
      }
      return !house->dead[static_cast<std::size_t>(rank)].load(std::memory_order_seq_cst);
    }
    void wake(int rank) const noexcept {
      const auto each = static_cast<std::size_t>(rank);
      house->woken[each].fetch_add(1, std::memory_order_relaxed);
      if (house->asleep[each].load(std::memory_order_seq_cst)) ring_doorbell(house->doorbell[each]);
    }
  };
  using Side = LockAlgorithm<Neighbours>;

  explicit House(int count) {
    for (int rank = 0; rank < count; ++rank) {
      sides.push_back(std::make_unique<Side>(memory.lock, count, rank, Neighbours{this}));
    }
  }
  Side& operator[](int rank) { return *sides[static_cast<std::size_t>(rank)]; }
  /// Marks `rank` as dead. It does nothing more.
  void bury(int rank) {
    dead[static_cast<std::size_t>(rank)].store(true, std::memory_order_seq_cst);
    for (auto& each : doorbell) ring_doorbell(each);
  }
  void sleep(int rank) {
    const auto self = static_cast<std::size_t>(rank);
    const auto seen = doorbell[self].load(std::memory_order_acquire);
    asleep[self].store(true, std::memory_order_seq_cst);
    if (!(*this)[rank].ready()) {
      const auto began_ns = monotonic_ns();
      futex_wait(doorbell[self], seen, std::chrono::seconds(20));
      if (monotonic_ns() - began_ns > 15'000'000'000) ADD_FAILURE() << "rank " << rank << " was not woken";
    }
    asleep[self].store(false, std::memory_order_relaxed);
  }
  LockAnswer lock(int rank, LockMode mode) {
    LockAnswer answer = (*this)[rank].request(mode);
    for (int spins = 0; answer == LockAnswer::not_held; ++spins) {
      if (spins > 20) sleep(rank);
      answer = (*this)[rank].step();
    }
    return answer;
  }
  std::uint64_t slot(int rank) { return memory.lock.slot(rank).load(); }

  struct Memory {
    LockMemory lock;
    alignas(64) std::array<std::atomic<std::uint64_t>, ranks_max> slots;
  } memory{};
  static_assert(sizeof(Memory) == lock_bytes(ranks_max));
  std::atomic<int> dies_when_looked_at{-1};  // the rank dies when another rank looks at its slot
  std::array<std::atomic<bool>, ranks_max> dead{};
  std::array<std::atomic<bool>, ranks_max> asleep{};
  std::array<std::atomic<std::uint32_t>, ranks_max> doorbell{};
  std::array<std::atomic<int>, ranks_max> woken{};
  std::vector<std::unique_ptr<Side>> sides;
};

constexpr auto exclusive = LockMode::exclusive;
constexpr auto shared = LockMode::shared;

TEST(LockMemory, HasAWordAndALineForEveryEightRanks) {
  EXPECT_EQ(lock_bytes(1), 128u);
  EXPECT_EQ(lock_bytes(8), 128u);
  EXPECT_EQ(lock_bytes(9), 192u);
  House house(9);

  ASSERT_EQ(house[8].request(exclusive), LockAnswer::held);
  ASSERT_EQ(house[2].request(shared), LockAnswer::not_held);

  EXPECT_EQ(house.memory.lock.word.load(), 9 | lock_word::waiters);
  EXPECT_EQ(house.memory.slots[2].load(), lock_slot::waiting_shared);
  EXPECT_EQ(house.memory.lock.ticket.load(), 1u);
}

TEST(LockAlgorithm, AdmitsReadersTogetherAndWritersAlone) {
  House house(4);
  EXPECT_EQ(house[0].request(shared), LockAnswer::held);
  EXPECT_EQ(house[1].request(shared), LockAnswer::held);
  EXPECT_FALSE(house[1].contended());

  EXPECT_EQ(house[2].request(exclusive), LockAnswer::not_held);
  EXPECT_TRUE(house[1].contended());
  EXPECT_EQ(house[3].request(shared), LockAnswer::not_held) << "a reader passed a writer that asked first";
  house[0].unlock();
  EXPECT_FALSE(house[2].step() == LockAnswer::held);
  house[1].unlock();
  EXPECT_TRUE(house[2].ready());
  EXPECT_EQ(house[2].step(), LockAnswer::held);
  EXPECT_TRUE(house[2].contended());
  EXPECT_FALSE(house[3].ready());
  house[2].unlock();
  EXPECT_EQ(house[3].step(), LockAnswer::held);
  house[3].unlock();

  EXPECT_EQ(house.memory.lock.word.load(), 0u);
}

TEST(LockAlgorithm, ServesInTheOrderOfArrival) {
  House house(8);
  ASSERT_EQ(house[0].request(exclusive), LockAnswer::held);
  ASSERT_EQ(house[5].request(shared), LockAnswer::not_held);
  ASSERT_EQ(house[3].request(shared), LockAnswer::not_held);
  ASSERT_EQ(house[7].request(exclusive), LockAnswer::not_held);
  ASSERT_EQ(house[1].request(shared), LockAnswer::not_held);
  ASSERT_EQ(house[6].request(exclusive), LockAnswer::not_held);
  ASSERT_EQ(house[2].request(exclusive), LockAnswer::not_held);

  house[0].unlock();
  EXPECT_EQ(house[5].step(), LockAnswer::held);
  EXPECT_EQ(house[3].step(), LockAnswer::held);
  EXPECT_EQ(house[7].step(), LockAnswer::not_held);
  EXPECT_EQ(house[0].request(shared), LockAnswer::not_held) << "a request passed earlier ones";
  house[5].unlock();
  house[3].unlock();
  EXPECT_EQ(house[7].step(), LockAnswer::held);
  house[7].unlock();
  EXPECT_EQ(house[1].step(), LockAnswer::held);
  EXPECT_EQ(house[0].step(), LockAnswer::not_held);
  house[1].unlock();
  EXPECT_EQ(house[6].step(), LockAnswer::held);
  house[6].unlock();
  EXPECT_EQ(house[2].step(), LockAnswer::held);
  house[2].unlock();
  EXPECT_EQ(house[0].step(), LockAnswer::held);
}

TEST(LockAlgorithm, FailedTryLeavesTheMemoryUnchanged) {
  House house(3);
  ASSERT_EQ(house[0].try_lock(exclusive), LockAnswer::held);
  EXPECT_EQ(house[1].try_lock(exclusive), LockAnswer::not_held);
  EXPECT_EQ(house[1].try_lock(shared), LockAnswer::not_held);
  EXPECT_EQ(house.memory.lock.word.load(), 1u);
  house[0].unlock();

  ASSERT_EQ(house[0].try_lock(shared), LockAnswer::held);
  EXPECT_EQ(house[1].try_lock(exclusive), LockAnswer::not_held);
  EXPECT_EQ(house.memory.lock.word.load(), 0u);
  EXPECT_EQ(house[1].try_lock(shared), LockAnswer::held);
  EXPECT_EQ(house.slot(2), lock_slot::idle);
}

TEST(LockAlgorithm, AbandonsARequestUnlessItIsGranted) {
  House house(3);
  ASSERT_EQ(house[0].request(exclusive), LockAnswer::held);
  ASSERT_EQ(house[1].request(exclusive), LockAnswer::not_held);
  ASSERT_EQ(house[2].request(shared), LockAnswer::not_held);

  EXPECT_TRUE(house[1].abandon());

  house[0].unlock();
  EXPECT_FALSE(house[2].abandon()) << "a granted request was taken back";
  EXPECT_EQ(house[2].step(), LockAnswer::held);
  ASSERT_EQ(house[1].request(exclusive), LockAnswer::not_held);
  ASSERT_EQ(house[0].request(shared), LockAnswer::not_held);
  EXPECT_TRUE(house[1].abandon()) << "a request that waits for a reader was not taken back";
  EXPECT_EQ(house[0].step(), LockAnswer::held) << "the lock was not granted though no earlier request is left";
}

TEST(LockAlgorithm, WakesTheGrantedRankAndTheWriterThatWaitsForReaders) {
  House house(4);
  ASSERT_EQ(house[0].request(shared), LockAnswer::held);
  ASSERT_EQ(house[1].request(exclusive), LockAnswer::not_held);
  ASSERT_EQ(house[2].request(shared), LockAnswer::not_held);
  ASSERT_EQ(house[3].request(exclusive), LockAnswer::not_held);

  house[0].unlock();
  EXPECT_EQ(house.woken[1].load(), 1);
  ASSERT_EQ(house[1].step(), LockAnswer::held);
  house[1].unlock();

  EXPECT_EQ(house.woken[2].load(), 1);
  EXPECT_EQ(house.woken[3].load(), 1);
}

TEST(LockAlgorithm, TellsExactlyOneRankOfADeadHolder) {
  for (const LockMode mode : {exclusive, shared}) {
    House house(4);
    ASSERT_EQ(house[0].request(exclusive), LockAnswer::held);
    ASSERT_EQ(house[1].request(mode), LockAnswer::not_held);
    EXPECT_FALSE(house[1].ready());

    house.bury(0);

    EXPECT_TRUE(house[1].ready());
    EXPECT_EQ(house[2].request(mode), mode == shared ? LockAnswer::held_after_death : LockAnswer::not_held);
    EXPECT_EQ(house[1].step(), mode == shared ? LockAnswer::held : LockAnswer::held_after_death);
    house[1].unlock();
    EXPECT_EQ(mode == shared ? LockAnswer::held : house[2].step(), LockAnswer::held);
    house[2].unlock();
    EXPECT_EQ(house.memory.lock.word.load(), 0u);
  }
}

TEST(LockAlgorithm, TellsARankThatTriesOfADeadHolder) {
  for (const LockMode mode : {exclusive, shared}) {
    House house(3);
    ASSERT_EQ(house[0].request(exclusive), LockAnswer::held);
    house.bury(0);

    EXPECT_EQ(house[1].try_lock(mode), LockAnswer::held_after_death);

    house[1].unlock();
    EXPECT_EQ(house[2].try_lock(mode), LockAnswer::held);
  }
}

TEST(LockAlgorithm, ReportsNoDeathOfReadersAndWaiters) {
  House house(5);
  ASSERT_EQ(house[0].request(shared), LockAnswer::held);
  ASSERT_EQ(house[1].request(exclusive), LockAnswer::not_held);
  ASSERT_EQ(house[2].request(exclusive), LockAnswer::not_held);
  ASSERT_EQ(house[3].request(shared), LockAnswer::not_held);

  house.bury(0);
  EXPECT_TRUE(house[1].ready());
  EXPECT_EQ(house[1].step(), LockAnswer::held);
  house.bury(2);
  house[1].unlock();

  EXPECT_EQ(house[3].step(), LockAnswer::held);
  EXPECT_EQ(house.slot(0), lock_slot::idle);
  EXPECT_EQ(house.slot(2), lock_slot::idle);
}

TEST(LockAlgorithm, ReportsNoDeathOfARankThatHadNotEntered) {
  House house(3);
  ASSERT_EQ(house[0].request(exclusive), LockAnswer::held);
  ASSERT_EQ(house[1].request(exclusive), LockAnswer::not_held);
  ASSERT_EQ(house[2].request(exclusive), LockAnswer::not_held);
  house[0].unlock();

  house.bury(1);

  EXPECT_EQ(house[2].step(), LockAnswer::held);
}

// The rank behind the dead one checked before the death, and sleeps now.
TEST(LockAlgorithm, PassesOnAgainIfTheNextHolderDiesBeforeTheGrant) {
  for (const LockMode mode : {exclusive, shared}) {
    House house(3);
    ASSERT_EQ(house[0].request(exclusive), LockAnswer::held);
    ASSERT_EQ(house[1].request(exclusive), LockAnswer::not_held);
    ASSERT_EQ(house[2].request(mode), LockAnswer::not_held);
    house.dies_when_looked_at = 1;

    house[0].unlock();

    EXPECT_EQ(house.woken[2].load(), 1);
    EXPECT_EQ(house[2].step(), LockAnswer::held);
  }
}

// Readers and writers request, try and abandon the lock, and sleep while they wait: no update is lost and no rank waits
// forever.
TEST(LockThreads, ExcludeEachOtherAndMakeProgress) {
  constexpr int ranks = 8;
  House house(ranks);
  const int locks = test::rounds(600);
  std::int64_t counter = 0;  // written under the exclusive lock, read under the shared lock
  std::atomic<std::int64_t> written{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int self = 0; self < ranks; ++self) {
    threads.emplace_back([&, self] {
      test::Random random(test::seed() * 100 + static_cast<std::uint64_t>(self));
      for (int i = 0; i < locks; ++i) {
        const LockMode mode = test::chance(random, 60) ? exclusive : shared;
        if (test::chance(random, 20)) {
          if (house[self].try_lock(mode) == LockAnswer::not_held) continue;
        } else if (test::chance(random, 25)) {
          LockAnswer answer = house[self].request(mode);
          while (answer == LockAnswer::not_held && !house[self].abandon()) answer = house[self].step();
          if (answer == LockAnswer::not_held) continue;
        } else {
          (void)house.lock(self, mode);
        }
        const std::int64_t seen = counter;
        if (mode == exclusive) written.fetch_add(1, std::memory_order_relaxed);
        if (test::chance(random, 10)) std::this_thread::yield();
        if (counter != seen) ++wrong;
        if (mode == exclusive) counter = seen + 1;
        house[self].unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(counter, written.load());
  EXPECT_EQ(wrong.load(), 0);
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(house.slot(rank), lock_slot::idle);
}

// A writer gets the lock although some reader always holds it, and a reader gets it among writers.
TEST(LockThreads, DoNotStarve) {
  constexpr int ranks = 4;
  for (const LockMode crowd : {shared, exclusive}) {
    House house(ranks);
    std::atomic<bool> stop{false};
    std::atomic<int> locks{0};
    std::vector<std::thread> threads;
    for (int self = 1; self < ranks; ++self) {
      threads.emplace_back([&, self] {
        while (!stop.load(std::memory_order_relaxed)) {
          (void)house.lock(self, crowd);
          locks.fetch_add(1, std::memory_order_relaxed);
          std::this_thread::yield();
          house[self].unlock();
        }
      });
    }
    for (int turn = 0; turn < test::rounds(30); ++turn) {
      (void)house.lock(0, crowd == shared ? exclusive : shared);
      house[0].unlock();
      for (const int seen = locks.load(); locks.load() < seen + ranks;) std::this_thread::yield();
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }
}

// Ranks die one after the other, most of them while they hold the lock. Each such death is told to one rank.
TEST(LockThreads, GoOnAfterTheDeathOfHolders) {
  constexpr int ranks = 8;
  for (int turn = 0; turn < test::rounds(60); ++turn) {
    House house(ranks);
    std::atomic<int> told{0};
    std::atomic<int> died_inside{0};
    bool damaged = false;  // protected by the lock; true while a dead writer's change is unrepaired
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int self = 0; self < ranks; ++self) {
      threads.emplace_back([&, self] {
        test::Random random(test::seed() + static_cast<std::uint64_t>(turn * ranks + self));
        const int locks = static_cast<int>(test::between(random, 1, 100));
        for (int i = 0; i < locks; ++i) {
          const LockAnswer answer = house.lock(self, exclusive);
          if ((answer == LockAnswer::held_after_death) != damaged) ++wrong;
          if (answer == LockAnswer::held_after_death) ++told;
          damaged = self != 0 && i + 1 == locks;
          if (damaged) ++died_inside;
          if (!damaged) house[self].unlock();
        }
        if (self == 0) return;
        house.bury(self);
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (house.lock(0, exclusive) == LockAnswer::held_after_death) ++told;

    EXPECT_EQ(told.load(), died_inside.load());
    EXPECT_EQ(wrong.load(), 0);
  }
}

}  // namespace
}  // namespace tonari::window
