#include "../support/shared.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <thread>

// Tests of shared arrays: contents, synchronisation, named writes. Homes and copies are tested in share_pages.cpp.
namespace tonari {
namespace {

using test::OnEveryWayToShare;

class SharedArrays : public OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, SharedArrays, testing::ValuesIn(test::ways_to_share_and_kernels()), test::name_of);

constexpr std::size_t page_words = 4096 / sizeof(std::uint64_t);

TEST_P(SharedArrays, AreZeroInitially) {
  run(3, [](Job& job) {
    const shared_array<std::uint64_t> array(job, 300 * page_words);

    EXPECT_EQ(std::accumulate(array.begin(), array.end(), std::uint64_t{0}), 0u);
  });
}

TEST_P(SharedArrays, ShowTheWritesOfAllRanksAfterABarrier) {
  run(3, [](Job& job) {
    const shared_array<std::uint64_t> array(job, 100 * page_words);
    const auto self = job.rank().index();
    for (std::uint64_t turn = 1; turn < 20; ++turn) {
      for (std::size_t i = self; i < array.size(); i += 3) array[i] = turn * i;
      ASSERT_EQ(share::barrier(job), Status::ok);

      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], turn * i) << "in turn " << turn;
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

TEST_P(SharedArrays, LetRanksWriteNeighbouringBytes) {
  run(4, [](Job& job) {
    const shared_array<std::uint8_t> array(job, 5 * 4096);
    const auto self = job.rank().index();
    for (std::uint8_t turn = 1; turn < 50; ++turn) {
      for (std::size_t i = self; i < array.size(); i += 4) array[i] = static_cast<std::uint8_t>(turn + i);
      ASSERT_EQ(share::barrier(job), Status::ok);
      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], static_cast<std::uint8_t>(turn + i));
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

TEST_P(SharedArrays, LoseNoIncrementUnderAMutex) {
  constexpr int ranks = 3;
  const int each = turns(300);
  run(ranks, [each](Job& job) {
    const shared_array<std::uint64_t> array(job, 2 * page_words);
    share::mutex mutex(job);
    for (int turn = 0; turn < each; ++turn) {
      const auto lock = mutex.lock();
      ASSERT_EQ(lock.status(), Status::ok);
      ++array[0];
      array[page_words] += array[0];
    }
    ASSERT_EQ(share::barrier(job), Status::ok);

    const auto all = static_cast<std::uint64_t>(ranks * each);
    EXPECT_EQ(array[0], all);
    EXPECT_EQ(array[page_words], all * (all + 1) / 2);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, ShowWritesMadeBeforeAFlagWasSet) {
  const auto last = static_cast<std::uint64_t>(turns(200));
  run(2, [last](Job& job) {
    const shared_array<std::uint64_t> array(job, 4 * page_words);
    share::flag there(job);
    share::flag back(job);
    for (std::uint64_t turn = 1; turn <= last; ++turn) {
      if (job.rank() == 0) {
        array[page_words + turn % page_words] = turn;
        ASSERT_EQ(there.set(turn), Status::ok);
        ASSERT_EQ(back.wait(turn), Status::ok);
        ASSERT_EQ(array[3 * page_words], turn);
      } else {
        ASSERT_EQ(there.wait(turn), Status::ok);
        ASSERT_EQ(array[page_words + turn % page_words], turn);
        array[3 * page_words] = turn;
        ASSERT_EQ(back.set(turn), Status::ok);
      }
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, AreVisitedByTheirHomesAndPrefetched) {
  run(2, [](Job& job) {
    const shared_array<std::uint64_t> array(job, 20 * page_words + 1);
    array.for_each_own([](std::size_t i, std::uint64_t& each) { each += i + 1; });
    ASSERT_EQ(share::barrier(job), Status::ok);

    array.prefetch(0, array.size());
    for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], i + 1);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, ReleaseWritesWhileOtherRanksCompute) {
  std::atomic<bool> released{false};
  run(3, [&released](Job& job) {
    const shared_array<std::uint64_t> array(job, 20 * page_words);
    std::uint64_t sum = 0;
    for (const std::uint64_t each : array) sum += each;
    ASSERT_EQ(sum, 0U);
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 0) {
      for (std::uint64_t& each : array) each = 7;  // some pages have their home here; all ranks have copies
      ASSERT_EQ(share::release(job, share::Others::will_come), Status::ok);
      released = true;
    }
    while (!released) std::this_thread::yield();
    ASSERT_EQ(share::barrier(job), Status::ok);
    for (const std::uint64_t each : array) ASSERT_EQ(each, 7U);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, AreGuardedByAMutexThatCanBeTried) {
  run(2, [](Job& job) {
    const shared_array<int> array(job, 1);
    share::mutex mutex(job);
    std::optional<share::mutex::Lock> lock;
    if (job.rank() == 0) {
      lock.emplace(mutex.lock());
      ASSERT_EQ(lock->status(), Status::ok);
      array[0] = 7;
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 1) {
      const auto exclusive = mutex.try_lock();
      EXPECT_EQ(exclusive.status(), Status::again);
      const auto shared = mutex.try_lock_shared();
      EXPECT_EQ(shared.status(), Status::again);
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 0) {
      ASSERT_EQ(lock->release(), Status::ok);
      EXPECT_FALSE(*lock);
      EXPECT_EQ(lock->release(), Status::ok) << "a second release must return ok";
    } else {
      const auto try_lock_shared = [&] {
        const auto reading = mutex.try_lock_shared();
        return static_cast<bool>(reading);
      };
      while (!try_lock_shared()) std::this_thread::yield();
      const auto shared = mutex.lock_shared();
      ASSERT_TRUE(shared);
      EXPECT_EQ(array[0], 7);
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedArrays, ShowNamedWrites) {
  run(3, [](Job& job) {
    ArrayOptions options;
    options.writes_are_named = true;
    const shared_array<std::uint32_t> array(job, 40'000, options);
    const auto self = job.rank().index();
    for (std::uint32_t turn = 1; turn < 20; ++turn) {
      for (std::size_t first = self * 100; first < array.size(); first += 300) {
        for (std::size_t i = first; i < first + 100; ++i) array[i] = turn + static_cast<std::uint32_t>(i);
        array.wrote(first, 100);
      }
      ASSERT_EQ(share::barrier(job), Status::ok);
      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], turn + i);
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

TEST_P(SharedArrays, ShowNamedWritesIfCopiesAreUpdated) {
  run(3, [](Job& job) {
    ArrayOptions options;
    options.writes_are_named = true;
    options.updates = true;
    const shared_array<std::uint32_t> array(job, 40'000, options);
    const auto self = job.rank().index();
    for (std::uint32_t turn = 1; turn < 30; ++turn) {
      for (std::size_t i = self; i < array.size(); i += 300) {
        array[i] = turn;
        array.wrote(i, 1);
      }
      ASSERT_EQ(share::barrier(job), Status::ok);
      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], i % 300 < 3 ? turn : 0);
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
}

TEST_P(SharedArrays, EndABarrierWhenARankHasLeft) {
  run(3, [](Job& job) {
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 1) return;
    EXPECT_EQ(share::barrier(job), Status::peer_gone);
  });
}

TEST_P(SharedArrays, CanBeMadeAndDestroyedRepeatedly) {
  run(2, [](Job& job) {
    for (int turn = 0; turn < 5; ++turn) {
      const shared_array<int> first(job, 10'000);
      const shared_array<int> second(job, 100);
      if (job.rank() == turn % 2) first[9'999] = second[99] = turn;
      ASSERT_EQ(share::barrier(job), Status::ok);
      EXPECT_EQ(first[9'999], turn);
      EXPECT_EQ(second[99], turn);
    }
  });
}

TEST_P(SharedArrays, CanBeReadAndWrittenBySystemCalls) {
  run(2, [](Job& job) {
    const shared_array<std::uint64_t> array(job, 64 * page_words);
    if (job.rank() == 1) std::iota(array.begin(), array.end(), std::uint64_t{1});
    ASSERT_EQ(share::barrier(job), Status::ok);
    const int file = ::memfd_create("copy", 0);
    const auto bytes = static_cast<ssize_t>(array.size() * sizeof array[0]);
    if (job.rank() == 0) {
      EXPECT_EQ(::pwrite(file, array.data(), array.size() * sizeof array[0], 0), bytes);
      array[5] = 0;
      EXPECT_EQ(::pread(file, array.data(), array.size() * sizeof array[0], 0), bytes);
    }
    ::close(file);
    ASSERT_EQ(share::barrier(job), Status::ok);
    for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], i + 1);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

}  // namespace
}  // namespace tonari
