#include "../support/windows.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>

// Tests of memory order in windows: litmus tests, each repeated thousands of times.
namespace tonari {
namespace {

using test::bytes_of;
using test::writable_bytes_of;

class Order : public test::OnEveryWindow {};
INSTANTIATE_TEST_SUITE_P(Each, Order, test::windows_of(test::window_variants()), test::name_of_window);

/// Words that one copy writes, spread over several cache lines. All hold the same value if the whole copy is visible.
using Words = std::array<std::uint64_t, 40>;
Words words_of(std::uint64_t value) {
  Words words;
  words.fill(value);
  return words;
}
void expect_words(std::span<const std::byte> bytes, std::uint64_t value) {
  Words words;
  std::memcpy(words.data(), bytes.data(), sizeof words);
  ASSERT_EQ(words, words_of(value));
}

TEST_P(Order, ANotificationShowsTheDataPushedBefore) {
  const auto turns = static_cast<std::uint64_t>(Order::turns(1000));
  run(2, 4096, [turns](Job& job, Window& window) {
    const int other = 1 - job.rank().value();
    for (std::uint64_t turn = 1; turn <= turns; ++turn) {
      if (job.rank() == 0) {
        ASSERT_EQ(window.push(window.at(JobRank{other}, 1024), bytes_of(words_of(turn * 3))), Status::ok);
        ASSERT_EQ(window.push_notified(window.at(JobRank{other}), bytes_of(words_of(turn)), 1), Status::ok);
      }
      ASSERT_EQ(window.wait_notified(1, turn), Status::ok);
      ASSERT_NO_FATAL_FAILURE(expect_words(window.local(), turn));
      if (job.rank() == 1) {
        ASSERT_NO_FATAL_FAILURE(
            expect_words(window.local().subspan(1024), turn * 3));  // the data pushed before the notification
        ASSERT_EQ(window.push_notified(window.at(JobRank{other}), bytes_of(words_of(turn)), 1), Status::ok);
      }
    }
  });
}

TEST_P(Order, AllNotificationsOfSeveralWritersAreCounted) {
  constexpr int ranks = 4;
  const auto turns = static_cast<std::uint64_t>(Order::turns(200));
  run(ranks, 4096, [turns](Job& job, Window& window) {
    if (job.rank() != 0) {
      const std::uint64_t place = static_cast<std::uint64_t>(job.rank().value()) * 512;
      for (std::uint64_t turn = 1; turn <= turns; ++turn) {
        ASSERT_EQ(window.push_notified(window.at(JobRank{0}, place), bytes_of(words_of(turn)), 0), Status::ok);
      }
      return;
    }
    for (std::uint64_t count = 1; count <= turns * 3; count += 7) {
      ASSERT_EQ(window.wait_notified(0, count), Status::ok);
      ASSERT_GE(window.notified(0), count);
    }
    ASSERT_EQ(window.wait_notified(0, turns * 3), Status::ok);
    ASSERT_EQ(window.notified(0), turns * 3);
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      ASSERT_NO_FATAL_FAILURE(expect_words(window.local().subspan(rank * 512), turns));
    }
  });
}

TEST_P(Order, ALockShowsTheDataPushedBeforeItsUnlock) {
  constexpr int ranks = 3;
  constexpr int data_at = 1;
  constexpr int lock_at = 2;
  const auto turns = static_cast<std::uint64_t>(Order::turns(150));
  run(ranks, 4096, [turns](Job& job, Window& window) {
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
      ASSERT_EQ(window.lock(JobRank{lock_at}), Status::ok);
      Words words;
      ASSERT_EQ(window.pull(writable_bytes_of(words), window.at(JobRank{data_at}, 8)), Status::ok);
      ASSERT_EQ(words, words_of(words[0]));
      if (job.rank() == data_at) {
        ASSERT_NO_FATAL_FAILURE(
            expect_words(window.local().subspan(8), words[0]));  // the data are also in its own memory
      }
      ASSERT_EQ(window.push(window.at(JobRank{data_at}, 8), bytes_of(words_of(words[0] + 1))), Status::ok);
      ASSERT_EQ(window.unlock(JobRank{lock_at}), Status::ok);
    }
    ASSERT_EQ(window.barrier(), Status::ok);
    Words words;
    ASSERT_EQ(window.pull(writable_bytes_of(words), window.at(JobRank{data_at}, 8)), Status::ok);
    ASSERT_EQ(words, words_of(turns * ranks));
  });
}

TEST_P(Order, ABarrierShowsPushedAndStoredData) {
  constexpr int ranks = 3;
  const auto turns = static_cast<std::uint64_t>(Order::turns(150));
  run(ranks, 4096, [turns](Job& job, Window& window) {
    const int next = (job.rank().value() + 1) % ranks;
    const std::uint64_t there = 512 * static_cast<std::uint64_t>(job.rank().value());
    std::byte* const direct = window.direct(window.at(JobRank{next}, there + 2048), sizeof(Words));
    for (std::uint64_t turn = 1; turn <= turns; ++turn) {
      ASSERT_EQ(window.push(window.at(JobRank{next}, there), bytes_of(words_of(turn))), Status::ok);
      const Words stored = words_of(turn + 1000);
      if (direct != nullptr) std::memcpy(direct, stored.data(), sizeof stored);
      const Words mine = words_of(turn + 2000);
      std::memcpy(window.local().data() + 3600, mine.data(), sizeof mine);
      ASSERT_EQ(window.barrier(), Status::ok);
      const int previous = (job.rank().value() + ranks - 1) % ranks;
      const std::size_t before = 512 * static_cast<std::size_t>(previous);
      ASSERT_NO_FATAL_FAILURE(expect_words(window.local().subspan(before), turn));
      if (window.direct(window.at(JobRank{previous})) != nullptr) {  // then the neighbour stored here directly
        ASSERT_NO_FATAL_FAILURE(expect_words(window.local().subspan(before + 2048), turn + 1000));
      }
      Words theirs;  // the owner stored them into its own part
      ASSERT_EQ(window.pull(writable_bytes_of(theirs), window.at(JobRank{next}, 3600)), Status::ok);
      ASSERT_EQ(theirs, words_of(turn + 2000));
      ASSERT_EQ(window.barrier(), Status::ok);
    }
  });
}

TEST_P(Order, ABarrierWithMulticastShowsTheDataOfEachRank) {
  constexpr int ranks = 4;
  const auto turns = static_cast<std::uint64_t>(Order::turns(200));
  run(ranks, 4096, [turns](Job& job, Window& window) {
    for (std::uint64_t turn = 1; turn <= turns; ++turn) {
      // The turns alternate between two halves: a rank that is ahead writes to the half that no rank reads any more.
      const std::uint64_t half = turn % 2 * 2048;
      const std::uint64_t own = half + 512 * static_cast<std::uint64_t>(job.rank().value());
      const Words words = words_of(turn * 10 + static_cast<std::uint64_t>(job.rank().value()));
      ASSERT_EQ(window.barrier_with_multicast(own, bytes_of(words)), Status::ok);
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        if (rank == static_cast<std::uint64_t>(job.rank().value())) continue;
        ASSERT_NO_FATAL_FAILURE(expect_words(window.local().subspan(half + 512 * rank), turn * 10 + rank));
      }
    }
  });
}

TEST_P(Order, AnAtomicOperationShowsTheDataPushedBefore) {
  // A third rank holds flag and data. It is in the library all the time, as some variants have no service thread.
  constexpr int home = 1;
  const auto turns = static_cast<std::uint64_t>(Order::turns(150, true));
  run(3, 4096, [turns](Job& job, Window& window) {
    if (job.rank() == home) return;
    const bool writes_first = job.rank() == 0;
    for (std::uint64_t turn = 1; turn <= turns; ++turn) {
      for (const bool writing : {writes_first, !writes_first}) {
        const std::uint64_t flag =
            2 * turn + (writing == writes_first ? 0 : 1);  // in the second half, the flag of the other rank
        if (writing) {
          ASSERT_EQ(window.push(window.at(JobRank{home}, 64), bytes_of(words_of(flag))), Status::ok);
          ASSERT_EQ(window.swap(window.at(JobRank{home}), flag).status, Status::ok);
          continue;
        }
        for (std::uint64_t seen = 0; seen != flag;) {
          const auto fetched = window.fetch_add(window.at(JobRank{home}), std::uint64_t{0});
          ASSERT_EQ(fetched.status, Status::ok);
          seen = fetched.value;
          if (seen != flag) std::this_thread::yield();
        }
        Words words;
        ASSERT_EQ(window.pull(writable_bytes_of(words), window.at(JobRank{home}, 64)), Status::ok);
        ASSERT_EQ(words, words_of(flag));
      }
    }
  });
}

// Store buffers may not delay an atomic operation beyond a later one: if two ranks each raise a flag and then read the
// other's flag, at least one of them sees the other's flag raised.
TEST_P(Order, AtomicOperationsOfTwoRanksAreSeenInOneOrder) {
  const int turns = Order::turns(150, true);
  run(3, 256, [turns](Job& job, Window& window) {
    for (int turn = 0; turn < turns; ++turn) {
      const auto at = [&](int number) { return window.at(JobRank{2}, static_cast<std::uint64_t>(number) * 64); };
      if (job.rank() < 2) {
        ASSERT_EQ(window.fetch_add(at(job.rank().value()), 1u).status, Status::ok);
        const auto other = window.fetch_add(at(1 - job.rank().value()), 0u);
        ASSERT_EQ(other.status, Status::ok);
        if (other.value == static_cast<std::uint32_t>(turn)) {
          ASSERT_EQ(window.fetch_add(at(2), 1u).status, Status::ok);
        }
      }
      ASSERT_EQ(window.barrier(), Status::ok);
      if (job.rank() == 2) {
        std::uint32_t blind = 0;
        std::memcpy(&blind, window.local().data() + 128, sizeof blind);
        ASSERT_LE(blind, 1u);
        std::memset(window.local().data() + 128, 0, sizeof blind);
      }
      ASSERT_EQ(window.barrier(), Status::ok);
    }
  });
}

}  // namespace
}  // namespace tonari
