#include "../support/windows.hpp"

#include "job/session.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

// Tests of the locks of windows: exclusion, order, time limits, and shared holders.
namespace tonari {
namespace {

using test::between;
using test::chance;

class WindowLocks : public test::OnEveryVariant {
 protected:
  static void run(int ranks, const std::function<void(Job&, Window&)>& body, const WindowOptions& options = {}) {
    test::as_jobs(
        ranks,
        [&](Job& job) {
          Window window(job, 64, options);
          body(job, window);
          if (!HasFatalFailure()) {
            EXPECT_EQ(window.barrier(), Status::ok);
          }
        },
        GetParam().settings);
  }
};
INSTANTIATE_TEST_SUITE_P(On, WindowLocks, testing::ValuesIn(test::window_variants()), test::name_of);

TEST_P(WindowLocks, ExcludeRanksAndTheirThreads) {
  constexpr int ranks = 8;
  constexpr int threads = 2;
  const int turns = test::rounds(15);
  int count = 0;  // written by the holder of the lock
  std::atomic<int> inside{0};
  run(ranks, [&](Job&, Window& window) {
    test::in_threads(threads, [&](int) {
      for (int turn = 0; turn < turns; ++turn) {
        ASSERT_EQ(window.lock(JobRank{3}), Status::ok);
        EXPECT_EQ(inside.fetch_add(1), 0);
        ++count;
        inside.fetch_sub(1);
        ASSERT_EQ(window.unlock(JobRank{3}), Status::ok);
      }
    });
  });
  EXPECT_EQ(count, ranks * threads * turns);
}

TEST_P(WindowLocks, ExcludeWritersWithEveryKindOfRequest) {
  constexpr int ranks = 4;
  constexpr int threads = 2;
  const int turns = test::rounds(60);
  WindowOptions options;
  options.locks = 2;
  struct Guarded {
    int value = 0;
    std::atomic<int> readers{0};
    std::atomic<int> writers{0};
  };
  std::array<Guarded, 2> guarded;
  std::atomic<int> written{0};
  run(
      ranks,
      [&](Job& job, Window& window) {
        test::in_threads(threads, [&](int thread) {
          test::Random random(test::seed() * 100 + static_cast<std::uint64_t>(job.rank().value() * threads + thread));
          for (int turn = 0; turn < turns; ++turn) {
            const auto number = static_cast<std::uint32_t>(between(random, 0, 1));
            const auto mode = chance(random, 50) ? LockMode::shared : LockMode::exclusive;
            bool exclusive = mode == LockMode::exclusive;
            Status status = Status::ok;
            switch (between(random, 0, 3)) {
              case 0: status = window.try_lock(JobRank{1}, number, mode); break;
              case 1:
                status = window.lock_for(std::chrono::microseconds(between(random, 0, 300)), JobRank{1}, number);
                exclusive = true;
                break;
              default: status = window.lock(JobRank{1}, number, mode); ASSERT_EQ(status, Status::ok);
            }
            if (status == Status::again || status == Status::timed_out) continue;
            ASSERT_EQ(status, Status::ok);
            Guarded& mine = guarded.at(number);
            if (exclusive) {
              EXPECT_EQ(mine.writers.fetch_add(1), 0);
              EXPECT_EQ(mine.readers.load(), 0);
              ++mine.value;
              ++written;
              mine.writers.fetch_sub(1);
            } else {
              mine.readers.fetch_add(1);
              EXPECT_EQ(mine.writers.load(), 0);
              EXPECT_GE(mine.value, 0);  // the read lets ThreadSanitizer find races
              mine.readers.fetch_sub(1);
            }
            ASSERT_EQ(window.unlock(JobRank{1}, number), Status::ok);
          }
        });
        ASSERT_EQ(window.unlock(JobRank{1}, 0), Status::invalid);
      },
      options);
  EXPECT_EQ(guarded[0].value + guarded[1].value, written.load());
}

void wait_until_it_waits(Job& job, int rank) {
  while (job.session().arena().block(rank).wait.load() != job::Wait::lock) std::this_thread::yield();
}

TEST_P(WindowLocks, AreGrantedInTheOrderOfRequests) {
  if (test::hears_only_in_calls(GetParam()))
    GTEST_SKIP() << "the home receives lock requests only when it asks for the lock itself";
  constexpr int ranks = 8;
  for (int turn = 0; turn < test::rounds(1); ++turn) {
    std::vector<int> order;  // written by the holder of the lock
    std::atomic<int> asking{0};
    run(ranks, [&](Job& job, Window& window) {
      if (job.rank() == 0) {
        ASSERT_EQ(window.lock(JobRank{4}), Status::ok);
        asking.store(1);
        asking.notify_all();
        while (asking.load() != ranks) std::this_thread::yield();
      } else {
        while (asking.load() != job.rank()) std::this_thread::yield();
        std::jthread next([&] {  // lets the next rank ask once this rank waits
          wait_until_it_waits(job, job.rank().value());
          ASSERT_EQ(window.fetch_add(window.at(JobRank{4}), 0u).status,
                    Status::ok);  // completes after the lock request has reached the home
          asking.fetch_add(1);
        });
        ASSERT_EQ(window.lock(JobRank{4}), Status::ok);
        order.push_back(job.rank().value());
      }
      ASSERT_EQ(window.unlock(JobRank{4}), Status::ok);
    });
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST_P(WindowLocks, AdmitReadersTogetherButNotPastAnEarlierWriter) {
  if (test::hears_only_in_calls(GetParam())) GTEST_SKIP() << "the home receives lock requests only when it unlocks";
  // The requests in their order: 0 holds the lock alone, 1 and 2 read, 3 writes, 4 reads.
  constexpr int ranks = 5;
  std::atomic<int> asking{0};
  std::atomic<int> reading{0};
  std::atomic<bool> written{false};
  run(ranks, [&](Job& job, Window& window) {
    if (job.rank() == 0) {
      ASSERT_EQ(window.lock(JobRank{0}), Status::ok);
      asking.store(1);
      while (asking.load() != ranks) std::this_thread::yield();
      ASSERT_EQ(window.unlock(JobRank{0}), Status::ok);
      return;
    }
    while (asking.load() != job.rank()) std::this_thread::yield();
    std::jthread next([&] {
      wait_until_it_waits(job, job.rank().value());
      ASSERT_EQ(window.fetch_add(window.at(JobRank{0}), 0u).status, Status::ok);  // completes after the lock request
      asking.fetch_add(1);
    });
    const auto mode = job.rank() == 3 ? LockMode::exclusive : LockMode::shared;
    ASSERT_EQ(window.lock(JobRank{0}, 0, mode), Status::ok);
    if (job.rank() <= 2) {
      EXPECT_FALSE(written.load());
      ++reading;
      while (reading.load() != 2) std::this_thread::yield();  // until the other reader has been let in, too
    } else if (job.rank() == 3) {
      EXPECT_EQ(reading.load(), 2);
      written.store(true);
    } else {
      EXPECT_TRUE(written.load());
    }
    ASSERT_EQ(window.unlock(JobRank{0}), Status::ok);
  });
}

TEST_P(WindowLocks, DoNotStarveAnyRank) {
  // A rank that unlocks and asks again comes after the waiting ranks: while one waits, no other gets the lock twice.
  constexpr int ranks = 4;
  std::atomic<int> others{0};
  std::atomic<bool> over{false};
  run(ranks, [&](Job& job, Window& window) {
    if (job.rank() == 0) {
      while (others.load() == 0) std::this_thread::yield();
      for (int turn = 0; turn < test::rounds(20); ++turn) {
        ASSERT_EQ(window.lock(JobRank{1}), Status::ok);
        ASSERT_EQ(window.unlock(JobRank{1}), Status::ok);
      }
      over.store(true);
      return;
    }
    while (!over.load()) {  // ends only if rank 0 gets the lock repeatedly
      ASSERT_EQ(window.lock(JobRank{1}), Status::ok);
      ++others;
      ASSERT_EQ(window.unlock(JobRank{1}), Status::ok);
    }
  });
}

TEST_P(WindowLocks, TimeOutWhileHeldAndCanBeTakenLater) {
  run(3, [](Job& job, Window& window) {
    using namespace std::chrono_literals;
    for (const auto limit : {std::chrono::nanoseconds(-1), 0ns, 1ns, 100'000ns, 3'000'000ns}) {
      if (job.rank() == 0) {
        ASSERT_EQ(window.lock(JobRank{2}), Status::ok);
      }
      ASSERT_EQ(window.barrier(), Status::ok);
      if (job.rank() != 0) {
        const auto start = std::chrono::steady_clock::now();
        EXPECT_EQ(window.lock_for(limit, JobRank{2}), Status::timed_out);
        EXPECT_GE(std::chrono::steady_clock::now() - start, limit);
        EXPECT_EQ(window.try_lock(JobRank{2}), Status::again);
        EXPECT_EQ(window.try_lock(JobRank{2}, 0, LockMode::shared), Status::again);
        EXPECT_EQ(window.unlock(JobRank{2}), Status::invalid);  // another rank holds it
      }
      ASSERT_EQ(window.barrier(), Status::ok);
      if (job.rank() == 0) {
        ASSERT_EQ(window.unlock(JobRank{2}), Status::ok);
        ASSERT_EQ(window.unlock(JobRank{2}), Status::invalid);
      }
      ASSERT_EQ(window.lock_for(std::chrono::nanoseconds::max(), JobRank{2}), Status::ok);
      ASSERT_EQ(window.unlock(JobRank{2}), Status::ok);
      ASSERT_EQ(window.barrier(), Status::ok);
      if (job.rank() == 1) {  // a free lock is granted even with a timeout of 0
        ASSERT_EQ(
            window.lock(JobRank{2}),
            Status::ok);  // between hosts the other ranks' unlocks may still be under way: this call waits for them
        ASSERT_EQ(window.unlock(JobRank{2}), Status::ok);
        EXPECT_EQ(window.lock_for(0ns, JobRank{2}), Status::ok);
        EXPECT_EQ(window.unlock(JobRank{2}), Status::ok);
        EXPECT_EQ(window.try_lock(JobRank{2}), Status::ok);
        EXPECT_EQ(window.unlock(JobRank{2}), Status::ok);
      }
      ASSERT_EQ(window.barrier(), Status::ok);
    }
  });
}

TEST_P(WindowLocks, HeldSharedAreSharedByAllRanksAndRefusedToWriters) {
  constexpr int ranks = 4;
  run(ranks, [](Job& job, Window& window) {
    ASSERT_EQ(window.lock(JobRank{1}, 0, LockMode::shared), Status::ok);
    ASSERT_EQ(window.lock(JobRank{1}, 0, LockMode::shared), Status::ok);  // this rank now holds the lock twice
    ASSERT_EQ(window.barrier(), Status::ok);                              // all ranks hold it at once
    EXPECT_EQ(window.try_lock(JobRank{1}), Status::again);
    if (job.rank() == 3) {
      EXPECT_EQ(window.lock_for(std::chrono::microseconds(200), JobRank{1}), Status::timed_out);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    ASSERT_EQ(window.unlock(JobRank{1}), Status::ok);
    EXPECT_EQ(window.try_lock(JobRank{1}), Status::again);
    ASSERT_EQ(window.barrier(), Status::ok);
    ASSERT_EQ(window.unlock(JobRank{1}), Status::ok);
    EXPECT_EQ(window.unlock(JobRank{1}), Status::invalid);
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() == 2) {
      EXPECT_EQ(window.lock(JobRank{1}), Status::ok);  // waits for unlocks that are under way
      EXPECT_EQ(window.unlock(JobRank{1}), Status::ok);
      EXPECT_EQ(window.try_lock(JobRank{1}), Status::ok);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() != 2) {
      EXPECT_EQ(window.try_lock(JobRank{1}, 0, LockMode::shared), Status::again);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    if (job.rank() == 2) {
      EXPECT_EQ(window.unlock(JobRank{1}), Status::ok);
    }
  });
}

TEST_P(WindowLocks, MayBeUnlockedByAnotherThreadOfTheirRank) {
  run(2, [](Job&, Window& window) {
    for (int turn = 0; turn < test::rounds(20); ++turn) {
      ASSERT_EQ(window.lock(JobRank{0}), Status::ok);
      std::jthread([&window] { EXPECT_EQ(window.unlock(JobRank{0}), Status::ok); });
    }
  });
}

TEST_P(WindowLocks, DoNotDependOnEachOther) {
  WindowOptions options;
  options.locks = 5;
  run(
      3,
      [](Job& job, Window& window) {
        for (int home = 0; home < 3; ++home) {
          for (std::uint32_t number = 0; number < 5; ++number) {
            const Status status = window.try_lock(JobRank{home}, number);
            EXPECT_TRUE(status == Status::ok || status == Status::again);
            if ((static_cast<int>(number) + home) % 3 == job.rank() && status != Status::ok) {
              EXPECT_EQ(window.lock(JobRank{home}, number), Status::ok);
            } else if (status == Status::ok && (static_cast<int>(number) + home) % 3 != job.rank()) {
              EXPECT_EQ(window.unlock(JobRank{home}, number), Status::ok);
            }
          }
          EXPECT_EQ(window.lock(JobRank{home}, 5), Status::bounds);
        }
        ASSERT_EQ(window.barrier(), Status::ok);
        for (int home = 0; home < 3; ++home) {
          for (std::uint32_t number = 0; number < 5; ++number) {
            const bool mine = (static_cast<int>(number) + home) % 3 == job.rank();
            EXPECT_EQ(window.unlock(JobRank{home}, number), mine ? Status::ok : Status::invalid);
          }
        }
      },
      options);
}

}  // namespace
}  // namespace tonari
