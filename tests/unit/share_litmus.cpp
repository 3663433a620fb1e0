#include "../support/shared.hpp"

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// Litmus tests of the consistency that share.hpp promises: small programs with an outcome that is impossible under
// sequential consistency. Each turn begins with random delays, so that the steps of the ranks interleave in many ways.
namespace tonari {
namespace {

using test::OnEveryWayToShare;
using test::Random;

constexpr std::size_t page_words = 4096 / sizeof(std::uint64_t);

class SharedLitmus : public OnEveryWayToShare {
 protected:
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  static constexpr int usual_turns = 100;  // sanitizers make each turn about ten times slower
#else
  static constexpr int usual_turns = 1000;
#endif
};
INSTANTIATE_TEST_SUITE_P(Over, SharedLitmus, testing::ValuesIn(test::ways_to_share_and_kernels()), test::name_of);

/// Spins or yields for a random time.
class Delay {
 public:
  explicit Delay(const Job& job) : random_(test::seed() * 64 + static_cast<std::uint64_t>(job.rank().value())) {}
  void operator()() {
    for (std::size_t left = test::between(random_, 0, 200); left != 0; --left)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    if (test::chance(random_, 20)) ::sched_yield();
  }

 private:
  Random random_;
};

/// Places for x and y: in one page, or in pages with homes at different ranks.
struct Words {
  Words(Job& job, bool on_one_page)
      : array(job, 4 * page_words), x(array[0]), y(array[on_one_page ? 1 : 3 * page_words]) {}
  shared_array<std::uint64_t> array;
  std::uint64_t& x;
  std::uint64_t& y;
};

void end_turn(Job& job) { ASSERT_EQ(share::barrier(job), Status::ok); }

TEST_P(SharedLitmus, MessagePassingByAFlagShowsAllWrites) {
  const int last = turns(usual_turns);
  for (const bool on_one_page : {true, false}) {
    run(2, [&](Job& job) {
      Words words(job, on_one_page);
      share::flag flag(job);
      Delay delay(job);
      for (std::uint64_t turn = 1; turn <= static_cast<std::uint64_t>(last); ++turn) {
        delay();
        if (job.rank() == 0) {
          words.x = turn;
          words.y = 2 * turn;
          ASSERT_EQ(flag.set(turn), Status::ok);
        } else if (flag.get().value == turn) {
          ASSERT_EQ(words.x, turn);
          ASSERT_EQ(words.y, 2 * turn);
        } else {
          ASSERT_EQ(flag.wait(turn), Status::ok);
          ASSERT_EQ(words.y, 2 * turn);
        }
        end_turn(job);
      }
    });
  }
}

TEST_P(SharedLitmus, StoreBufferingIsNotSeenUnderLocks) {
  const int last = turns(usual_turns);
  for (const bool on_one_page : {true, false}) {
    run(2, [&](Job& job) {
      Words words(job, on_one_page);
      const shared_array<std::uint64_t> seen(job, 2);
      share::mutex of_x(job);
      share::mutex of_y(job);
      Delay delay(job);
      const auto self = job.rank().index();
      for (std::uint64_t turn = 1; turn <= static_cast<std::uint64_t>(last); ++turn) {
        delay();
        {
          const auto lock = (self == 0 ? of_x : of_y).lock();
          ASSERT_EQ(lock.status(), Status::ok);
          (self == 0 ? words.x : words.y) = turn;
        }
        delay();
        {
          const auto lock = (self == 0 ? of_y : of_x).lock();
          ASSERT_EQ(lock.status(), Status::ok);
          seen[self] = self == 0 ? words.y : words.x;
        }
        end_turn(job);
        ASSERT_TRUE(seen[0] == turn || seen[1] == turn) << "both ranks read the old value in turn " << turn;
        end_turn(job);
      }
    });
  }
}

TEST_P(SharedLitmus, StoreBufferingIsNotSeenWithFlags) {
  const int last = turns(usual_turns);
  run(2, [&](Job& job) {
    share::flag x(job);
    share::flag y(job);
    const shared_array<std::uint64_t> seen(job, 2);
    Delay delay(job);
    const auto self = job.rank().index();
    for (std::uint64_t turn = 1; turn <= static_cast<std::uint64_t>(last); ++turn) {
      delay();
      ASSERT_EQ((self == 0 ? x : y).set(turn), Status::ok);
      seen[self] = (self == 0 ? y : x).get().value;
      end_turn(job);
      ASSERT_TRUE(seen[0] == turn || seen[1] == turn);
      end_turn(job);
    }
  });
}

// Two ranks write and two read in opposite orders. The readers must agree on which write came first.
TEST_P(SharedLitmus, IndependentReadsAgreeOnIndependentWritesUnderLocks) {
  const int last = turns(usual_turns / 4);
  run(4, [&](Job& job) {
    Words words(job, false);
    const shared_array<std::uint64_t> seen(job, 4);
    share::mutex of_x(job);
    share::mutex of_y(job);
    Delay delay(job);
    const auto read = [&](share::mutex& mutex, const std::uint64_t& word) {
      const auto lock = mutex.lock_shared();
      EXPECT_EQ(lock.status(), Status::ok);
      return word;
    };
    for (std::uint64_t turn = 1; turn <= static_cast<std::uint64_t>(last); ++turn) {
      delay();
      if (job.rank() == 0) {
        const auto lock = of_x.lock();
        ASSERT_EQ(lock.status(), Status::ok);
        words.x = turn;
      } else if (job.rank() == 1) {
        const auto lock = of_y.lock();
        ASSERT_EQ(lock.status(), Status::ok);
        words.y = turn;
      } else if (job.rank() == 2) {
        seen[0] = read(of_x, words.x);
        seen[1] = read(of_y, words.y);
      } else {
        seen[2] = read(of_y, words.y);
        seen[3] = read(of_x, words.x);
      }
      end_turn(job);
      const bool x_first = seen[0] == turn && seen[1] < turn;
      const bool y_first = seen[2] == turn && seen[3] < turn;
      ASSERT_FALSE(x_first && y_first) << "in turn " << turn;
      end_turn(job);
    }
  });
}

TEST_P(SharedLitmus, IndependentReadsAgreeOnIndependentWritesWithFlags) {
  const int last = turns(usual_turns / 4);
  run(4, [&](Job& job) {
    Words words(job, true);
    share::flag x(job);
    share::flag y(job);
    const shared_array<std::uint64_t> seen(job, 4);
    Delay delay(job);
    for (std::uint64_t turn = 1; turn <= static_cast<std::uint64_t>(last); ++turn) {
      delay();
      if (job.rank() == 0) {
        words.x = turn;
        ASSERT_EQ(x.set(turn), Status::ok);
      } else if (job.rank() == 1) {
        words.y = turn;
        ASSERT_EQ(y.set(turn), Status::ok);
      } else if (job.rank() == 2) {
        seen[0] = x.get().value;
        if (seen[0] == turn) {
          ASSERT_EQ(words.x, turn);
        }
        seen[1] = y.get().value;
      } else {
        seen[2] = y.get().value;
        if (seen[2] == turn) {
          ASSERT_EQ(words.y, turn);
        }
        seen[3] = x.get().value;
      }
      end_turn(job);
      ASSERT_FALSE(seen[0] == turn && seen[1] < turn && seen[2] == turn && seen[3] < turn) << "in turn " << turn;
      end_turn(job);
    }
  });
}

TEST_P(SharedLitmus, UpdatesUnderLocksAreNotLost) {
  const int each = turns(usual_turns / 4);
  run(3, [&](Job& job) {
    Words words(job, true);
    share::mutex of_x(job);
    share::mutex of_y(job);
    share::counter counter(job);
    Delay delay(job);
    for (int turn = 0; turn < each; ++turn) {
      delay();
      const bool is_x = turn % 2 == 0;
      const auto lock = (is_x ? of_x : of_y).lock();  // two locks, one page
      ASSERT_EQ(lock.status(), Status::ok);
      ++(is_x ? words.x : words.y);
      EXPECT_EQ(counter.fetch_add(1).status, Status::ok);
    }
    end_turn(job);
    EXPECT_EQ(words.x + words.y, static_cast<std::uint64_t>(3 * each));
    EXPECT_EQ(words.x, static_cast<std::uint64_t>(3 * ((each + 1) / 2)));
    EXPECT_EQ(counter.get().value, static_cast<std::uint64_t>(3 * each));
    end_turn(job);
  });
}

TEST_P(SharedLitmus, WritersOfOnePageUnderTheirOwnLocksLoseNoUpdate) {
  constexpr std::size_t ranks = 3;
  const int last = turns(usual_turns / 4);
  run(ranks, [&](Job& job) {
    const shared_array<std::uint8_t> bytes(job, 4096);
    std::vector<share::mutex> mutexes;
    for (std::size_t i = 0; i < ranks; ++i) mutexes.emplace_back(job);
    const auto self = job.rank().index();
    std::array<unsigned, ranks> seen{};
    Delay delay(job);
    for (int turn = 0; turn < last; ++turn) {
      {
        const auto lock = mutexes[self].lock();
        ASSERT_EQ(lock.status(), Status::ok);
        ++bytes[self];
        ASSERT_EQ(bytes[self], static_cast<std::uint8_t>(turn + 1));
      }
      delay();
      const std::size_t other = (self + 1 + static_cast<std::size_t>(turn) % 2) % ranks;
      const auto lock = mutexes[other].lock_shared();
      ASSERT_EQ(lock.status(), Status::ok);
      seen[other] += static_cast<std::uint8_t>(bytes[other] - seen[other]);
      ASSERT_LE(seen[other], static_cast<unsigned>(last));  // fails if the byte went back to an older value
    }
    end_turn(job);
    for (std::size_t i = 0; i < ranks; ++i) EXPECT_EQ(bytes[i], static_cast<std::uint8_t>(last));
    end_turn(job);
  });
}

// Ranks mostly write pages in turn. Such a page is brought to its next writer, or made writable at its home, before the
// write. There are only two values, so a write may leave a page unchanged.
TEST_P(SharedLitmus, PagesThatBeginAndEndMigratingShowTheLastWrite) {
  constexpr std::size_t pages = 6;
  const auto last = static_cast<std::uint64_t>(turns(usual_turns));
  for (const int ranks : {2, 3}) {
    run(ranks, [&](Job& job) {
      ArrayOptions options;
      options.homes_move = false;
      const shared_array<std::uint64_t> words(job, pages * page_words, options);
      share::flag ended(job);  // the number of turns that have ended
      std::array<std::uint64_t, pages> model{};
      Random random(test::seed());  // all ranks use the same seed
      Delay delay(job);
      unsigned percent = 100;  // how many pages are written
      for (std::uint64_t turn = 0; turn < last; ++turn) {
        if (turn % 32 == 0) percent = test::chance(random, 50) ? 100 : 30;
        const bool is_ours =
            turn % static_cast<std::uint64_t>(job.size()) == static_cast<std::uint64_t>(job.rank().value());
        if (is_ours) {
          delay();
          ASSERT_EQ(ended.wait(turn), Status::ok);
        }
        for (std::size_t page = 0; page < pages; ++page) {
          std::uint64_t& word = words[page * page_words + page];
          const bool is_written = test::chance(random, percent);
          const std::uint64_t next = test::between(random, 0, 1);
          if (is_ours) {
            EXPECT_EQ(word, model[page]) << "page " << page << " in turn " << turn;
          }
          if (is_ours && is_written) word = next;
          if (is_written) model[page] = next;
        }
        if (is_ours) {
          ASSERT_EQ(ended.set(turn + 1), Status::ok);
        }
      }
      end_turn(job);
    });
  }
}

// The home writes a migratory page and then writes the old value again. In between, another rank fetches the page for
// a neighbouring word. That rank must not keep seeing the intermediate value.
TEST_P(SharedLitmus, AValueThatAHomeHasUndoneDisappears) {
  const std::uint64_t last = 8;  // the number of turns; it must be even
  std::atomic<int> step{0};
  run(3, [&](Job& job) {
    const Words words(job, true);
    share::flag ended(job);
    for (std::uint64_t turn = job.rank() == 1 ? 1 : 0; job.rank() < 2 && turn < last; turn += 2) {
      ASSERT_EQ(ended.wait(turn), Status::ok);
      words.x = turn + 1;
      ASSERT_EQ(ended.set(turn + 1), Status::ok);
    }
    if (job.rank() == 0) {
      ASSERT_EQ(ended.wait(last), Status::ok);
      words.x = 100;
      step = 1;
      while (step != 2) ::sched_yield();
      words.x = last;
      ASSERT_EQ(ended.set(last + 1), Status::ok);
    } else if (job.rank() == 2) {
      while (step != 1) ::sched_yield();
      EXPECT_EQ(words.y, 0U);
      step = 2;
      ASSERT_EQ(ended.wait(last + 1), Status::ok);
      EXPECT_EQ(words.x, last);
    }
    end_turn(job);
  });
}

TEST_P(SharedLitmus, WritesOfTheHomeReachRanksThatHaveCopies) {
  const int last = turns(usual_turns / 2);
  run(3, [&](Job& job) {
    Words words(job, true);  // the page's home is rank 0
    share::mutex mutex(job);
    std::uint64_t before = 0;
    Delay delay(job);
    for (int turn = 0; turn < last; ++turn) {
      delay();
      if (job.rank() == 0) {
        const auto lock = mutex.lock();
        ASSERT_EQ(lock.status(), Status::ok);
        ++words.x;
        words.y = 3 * words.x;
      } else {
        const auto lock = mutex.lock_shared();
        ASSERT_EQ(lock.status(), Status::ok);
        ASSERT_GE(words.x, before);
        before = words.x;
        ASSERT_EQ(words.y, 3 * before);
      }
    }
    end_turn(job);
    EXPECT_EQ(words.x, static_cast<std::uint64_t>(last));
    end_turn(job);
  });
}

}  // namespace
}  // namespace tonari
