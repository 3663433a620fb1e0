#include "../support/guarded.hpp"

#include "fabric/bulk.hpp"
#include "fabric/engine.hpp"
#include "job/session.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

// Tests of guarded data: values, locks, ownership and hints. share_guarded_failures.cpp tests refusals and deaths.
namespace tonari {
namespace {

using test::Random;

class Guarded : public test::OnEveryGuardedSetting {};
INSTANTIATE_TEST_SUITE_P(Over, Guarded, testing::ValuesIn(test::guarded_settings()), test::name_of_setting);

TEST_P(Guarded, HasTheInitialValueOfItsHome) {
  for (const int home : {0, 2}) {
    run(3, [home](Job& job) {
      guarded<int> value(job, 10 + job.rank().value(), options(home));
      guarded_span<char> zeros(job, 100, options(home));
      EXPECT_EQ(*value.read(), 10 + home);
      EXPECT_EQ(std::ranges::count(zeros.read(), '\0'), 100);
      EXPECT_EQ(zeros.size(), 100u);
    });
  }
}

TEST_P(Guarded, LosesNoUpdateOfAnyRankOrThread) {
  constexpr int ranks = 4;
  constexpr int threads = 2;
  const int each = turns(200);
  run(ranks, [each](Job& job) {
    guarded<std::uint64_t> counter(job, 0, options(1));
    test::in_threads(threads, [&](int) {
      for (int turn = 0; turn < each; ++turn) ++*counter.write();
    });
    ASSERT_EQ(meet(job), Status::ok);
    EXPECT_EQ(*counter.read(), static_cast<std::uint64_t>(ranks * threads * each));
  });
}

// A read returns the data of a single write, and never an older value than an earlier read returned.
TEST_P(Guarded, ShowsReadersWholeValuesInOrder) {
  for (const std::size_t count : {1u, 3u, 5u, 32u, 33u, 1000u, 20'000u}) {
    run(3, [count](Job& job) {
      guarded_span<std::uint64_t> values(job, count, options());
      std::uint64_t seen = 0;
      const int rounds = turns(count > 1000 ? 20 : 60);
      Random random(test::seed() * 7 + static_cast<std::uint64_t>(job.rank().value()));
      for (int round = 0; round < rounds; ++round) {
        if (test::chance(random, 40)) {
          const auto access = values.write();
          ASSERT_TRUE(std::ranges::all_of(access, [&](auto each) { return each == access[0]; }));
          ASSERT_GE(access[0], seen);
          seen = access[0] + 1;
          std::ranges::fill(access, seen);
        } else {
          const auto access = values.read();
          ASSERT_TRUE(std::ranges::all_of(access, [&](auto each) { return each == access[0]; }));
          ASSERT_GE(access[0], seen);
          seen = access[0];
        }
      }
    });
  }
}

// A write is visible to a rank that hears of it by other means.
TEST_P(Guarded, ShowsWritesAnnouncedByOtherMeans) {
  constexpr int ranks = 3;
  run(ranks, [](Job& job) {
    Communicator world(job);
    guarded<std::array<int, 20>> values(job, {}, options());
    for (int round = 1; round <= turns(40); ++round) {
      if (job.rank() == round % ranks) (*values.write())[3] = round;
      ASSERT_EQ(world.barrier(), Status::ok);
      ASSERT_EQ((*values.read())[3], round);
      ASSERT_EQ((*values.read())[3], round);
      ASSERT_EQ(world.barrier(), Status::ok);
    }
  });
}

TEST_P(Guarded, MovesSpansOfEverySize) {
  for (const std::size_t bytes : {1u, 31u, 32u, 33u, 255u, 4096u, 16'384u, 16'385u, 100'000u, 3'000'001u}) {
    run(3, [bytes](Job& job) {
      Communicator world(job);
      guarded_span<std::byte> span(job, bytes, options());
      for (int round = 0; round < 4; ++round) {
        const auto expected = test::pattern(bytes, static_cast<std::size_t>(round) + 1);
        if (job.rank() == (round + 1) % 3) std::ranges::copy(expected, span.write().begin());
        ASSERT_EQ(world.barrier(), Status::ok);
        EXPECT_TRUE(std::ranges::equal(span.read(), expected)) << bytes;
        ASSERT_EQ(world.barrier(), Status::ok);
      }
    });
  }
}

// The owner has no bulk memory left, so it cannot send more than a head.
TEST_P(Guarded, PutsDataWithoutFreeBulkMemory) {
  constexpr std::size_t bytes = 100'000;
  run(2, [](Job& job) {
    fabric::Engine& engine = fabric::Engine::of(job.session());
    const bool puts = engine.by_key() != nullptr && job.session().settings().put_bytes <= bytes;
    if (!puts || GetParam().mover != Mover::owner_puts)
      GTEST_SKIP() << "with these options data travel in messages, or the asker gets them";
    Communicator world(job);
    guarded_span<std::byte> span(job, bytes, options());
    const auto expected = test::pattern(bytes, 1);
    std::vector<fabric::BulkPlace> blocks;
    if (job.rank() == 0) {
      std::ranges::copy(expected, span.write().begin());
      while (const auto block = engine.bulk().allocate(fabric::bulk_tail_bytes_max, 1)) blocks.push_back(*block);
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    if (job.rank() == 1) {
      EXPECT_TRUE(std::ranges::equal(span.read(), expected));
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    for (const fabric::BulkPlace block : blocks) fabric::BulkReader::give_back(engine.bulk_of(0), block);
  });
}

// The data exceed all buffers, so the writer succeeds only if computing readers receive them.
TEST_P(Guarded, CanBeWrittenWhileItsReadersCompute) {
  if (GetParam().variant.name == "MemoryNoService")
    GTEST_SKIP() << "without a service thread a computing rank does not reply";
  std::atomic<bool> written{false};
  run(3, [&written](Job& job) {
    Communicator world(job);
    std::vector<guarded_span<int>> spans;
    for (int i = 0; i < 40; ++i) spans.emplace_back(job, 10'000, options());
    for (auto& span : spans) ASSERT_EQ(span.read()[9'999], 0);
    ASSERT_EQ(world.barrier(), Status::ok);
    if (job.rank() == 0) {
      for (int turn = 1; turn <= 3; ++turn) {
        for (auto& span : spans) std::ranges::fill(span.write(), turn);
      }
      written = true;
    }
    while (!written) std::this_thread::yield();
    for (auto& span : spans) ASSERT_EQ(span.read()[9'999], 3);
    ASSERT_EQ(world.barrier(), Status::ok);
  });
}

// A try may end while its rank is being made the owner and its data are being fetched, and another rank has asked after
// it.
TEST_P(Guarded, PassesOwnershipOnAfterTries) {
  constexpr int ranks = 3;
  std::atomic<std::uint32_t> written{0};
  run(ranks, [&, last = turns(200)](Job& job) {
    guarded_span<std::uint32_t> span(job, 50'000, options());
    for (int turn = 0; turn < last; ++turn) {
      if (auto tried = span.try_write()) {
        ASSERT_EQ(tried.release(), Status::ok);
      }
      auto access = span.write();
      ASSERT_TRUE(access);
      ASSERT_EQ(access[0], written);
      ASSERT_EQ(access[49'999], written);
      access[0] = access[49'999] = ++written;
    }
  });
}

TEST_P(Guarded, AdmitsReadersTogether) {
  run(3, [](Job& job) {
    guarded<int> value(job, 5, options());
    Communicator world(job);
    const auto one = value.read();
    ASSERT_TRUE(one);
    ASSERT_EQ(world.barrier(), Status::ok);  // all ranks hold it for reading
    EXPECT_EQ(*one, 5);
    ASSERT_EQ(world.barrier(), Status::ok);
  });
}

TEST_P(Guarded, KeepsWritersAndReadersApart) {
  run(3, [](Job& job) {
    guarded<std::array<std::uint64_t, 2>> pair(job, {}, options(2));
    guarded<std::uint64_t> inside(job, 0, options(0));
    for (int turn = 0; turn < turns(100); ++turn) {
      if ((turn + job.rank().value()) % 3 == 0) {
        auto access = pair.write();
        ++(*access)[0];
        ++*inside.write();
        ++(*access)[1];
      } else {
        const auto access = pair.read();
        ASSERT_EQ((*access)[0], (*access)[1]);
        ASSERT_EQ((*access)[0], *inside.read());  // no writer is between its two updates
      }
    }
  });
}

TEST_P(Guarded, IsFairToARankWhileAnotherLocksRepeatedly) {
  run(2, [](Job& job) {
    guarded<int> flag(job, 0, options());
    if (job.rank() == 0) {
      while (*flag.write() == 0) {
      }
    } else {
      *flag.write() = 1;
    }
  });
}

TEST_P(Guarded, IsFairToReadersAmongWriters) {
  run(3, [](Job& job) {
    guarded<std::array<int, 2>> values(job, {}, options());
    if (job.rank() == 2) {
      for (int seen = 0; seen < turns(20);) seen += (*values.read())[0] >= 0 ? 1 : 0;
      (*values.write())[1] = 1;
      return;
    }
    for (;;) {
      const auto access = values.write();
      if ((*access)[1] == 1) break;
      ++(*access)[0];
    }
  });
}

TEST_P(Guarded, LocksTwoVariablesInTheSameOrderWithoutDeadlock) {
  run(2, [](Job& job) {
    guarded<int> a(job, 0, options(0));
    guarded<int> b(job, 0, options(1));
    for (int turn = 0; turn < turns(20); ++turn) {
      {
        const auto access = a.write();
        ASSERT_TRUE(access);
        ++*access;
      }
      const auto of_a = a.read();
      ASSERT_TRUE(of_a);
      EXPECT_GT(*of_a, turn);
      const auto of_b = b.write();
      ASSERT_TRUE(of_b);
      ++*of_b;
    }
    ASSERT_EQ(meet(job), Status::ok);
    EXPECT_EQ(*a.read(), 2 * turns(20));
    EXPECT_EQ(*b.read(), 2 * turns(20));
  });
}

TEST_P(Guarded, TryFailsWhileHeldAndSucceedsLater) {
  run(2, [](Job& job) {
    Communicator world(job);
    guarded<int> value(job, 0, options());
    std::optional<GuardedAccess<int>> held;
    if (job.rank() == 0) {
      held.emplace(value.try_write());
      ASSERT_EQ(held->status(), Status::ok);
      const auto reading = value.try_read();
      EXPECT_EQ(reading.status(), Status::again);
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    if (job.rank() == 1) {
      const auto writing = value.try_write();
      EXPECT_EQ(writing.status(), Status::again);
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    const auto try_write = [&] {
      for (;;) {
        if (auto access = value.try_write()) return access;
        std::this_thread::yield();
      }
    };
    const auto try_read = [&] {
      for (;;) {
        if (auto access = value.try_read()) return access;
        std::this_thread::yield();
      }
    };
    if (job.rank() == 0) {
      EXPECT_EQ(held->release(), Status::ok);
    } else {
      ++*try_write();
    }
    EXPECT_GE(*try_read(), 0);
    ASSERT_EQ(world.barrier(), Status::ok);
    if (job.rank() == 0) {
      EXPECT_EQ(*try_write(), 1);
    }
  });
}

TEST_P(Guarded, GivesTheSameResultsWithHints) {
  constexpr int ranks = 4;
  run(ranks, [](Job& job) {
    Communicator world(job);
    guarded_span<int> values(job, 5'000, options(3));
    Random random(test::seed() * 11 + static_cast<std::uint64_t>(job.rank().value()));
    int own = 0;
    for (int turn = 0; turn < turns(150); ++turn) {
      switch (test::between(random, 0, 6)) {
        case 0: values.prefetch(); break;
        case 1: EXPECT_EQ(values.update_now(), Status::ok); break;
        case 2: values.drop(); break;
        case 3: {
          const auto access = values.write();
          for (int& each : access) ++each;
          if (test::chance(random, 30)) {
            EXPECT_EQ(values.update_now(), Status::ok);
          }
          ++own;
          break;
        }
        default: {
          const auto access = values.read();
          ASSERT_EQ(std::ranges::count(access, access[0]), 5'000);
        }
      }
    }
    ASSERT_EQ(world.barrier(), Status::ok);
    ASSERT_EQ(world.all_reduce(std::span(&own, 1)), Status::ok);
    EXPECT_EQ(values.read()[4'999], own);
  });
}

// The ranks form a tree more than two levels deep, and their lists fill more than one head.
TEST_P(Guarded, ReachesManyReadersThroughATree) {
  constexpr int ranks = 12;
  run(ranks, [](Job& job) {
    Communicator world(job);
    guarded_span<int> few(job, 2, options(0));
    guarded_span<int> many(job, 6'000, options(5));
    for (int round = 1; round <= turns(12); ++round) {
      for (guarded_span<int>* const each : {&few, &many}) {
        if (job.rank() == round % ranks) std::ranges::fill(each->write(), round);
        ASSERT_EQ(world.barrier(), Status::ok);
        const auto access = each->read();
        ASSERT_EQ(access[0], round);
        ASSERT_EQ(access[access.size() - 1], round);
      }
      ASSERT_EQ(world.barrier(), Status::ok);
    }
  });
}

TEST_P(Guarded, CanBeFreedByEachRankAtItsOwnTime) {
  run(3, [](Job& job) {
    for (int turn = 0; turn < 5; ++turn) {
      guarded_span<int> values(job, 10'000, options(turn % 3));
      auto access = values.write();
      EXPECT_EQ(access[0], access[9'999]);
      for (int& each : access) ++each;
    }
  });
}

}  // namespace
}  // namespace tonari
