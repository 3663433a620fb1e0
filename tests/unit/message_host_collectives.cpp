#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

// Tests what collectives through shared memory promise in addition to message_collectives.cpp, which tests all kinds.
namespace tonari {
namespace {

using test::as_ranks;
using test::Killed;
using test::pattern;

// One length for each way of the data: in a line, in a small block, in a large block, between programs.
constexpr std::array<std::size_t, 5> counts{1, 6, 100, 5000, 40000};

std::vector<double> ones(std::size_t count) { return std::vector<double>(count, 1.0); }

void expect_sum(Communicator& world, std::size_t count) {
  auto values = ones(count);
  ASSERT_EQ(world.all_reduce(values), Status::ok);
  ASSERT_EQ(values, std::vector<double>(count, world.size()));
}

TEST(SharedCollectives, DifferentLengthsReturnInvalidOnAllRanksThatSeeThem) {
  for (const int ranks : {2, 3}) {
    as_ranks(ranks, [](Communicator& world) {
      const bool differs = world.rank() == 1;
      for (const std::size_t count : counts) {
        for (const std::size_t other : counts) {
          if (count == other) continue;
          auto values = ones(differs ? other : count);
          EXPECT_EQ(world.all_reduce(values), Status::invalid) << count << ' ' << other;
          values = ones(differs ? other : count);
          const Status status = world.broadcast(values, Rank{0});
          EXPECT_EQ(status == Status::invalid, differs || (world.size() == 2 && status != Status::ok))
              << count << ' ' << other;
          ASSERT_NO_FATAL_FAILURE(expect_sum(world, count));
        }
      }
    });
  }
}

TEST(SharedCollectives, AnErrorOfTheRootReturnsInvalidOnTheOthers) {
  for (const std::size_t count : counts) {
    as_ranks(3, [count](Communicator& world) {
      auto values = ones(count);
      EXPECT_EQ(world.broadcast(values, Rank{world.rank() == 0 ? 77 : 0}), Status::invalid);
      ASSERT_NO_FATAL_FAILURE(expect_sum(world, count));
    });
  }
}

TEST(SharedCollectives, ManyMoreThanTheLinesOfABoardRunAtOnceAndEndInAnyOrder) {
  as_ranks(3, [](Communicator& world) {
    constexpr std::size_t many = 150;
    test::Random random(test::seed());
    std::vector<std::vector<double>> values;
    for (std::size_t i = 0; i < many; ++i) values.push_back(ones(counts[i % counts.size()] + i));
    std::vector<Request> requests;
    for (std::size_t i = 0; i < many; ++i) {
      requests.push_back(i % 7 == 0 ? world.start_barrier() : world.start_all_reduce(values[i]));
    }
    for (std::size_t left = many; left > 0; --left) {  // each rank waits in another order
      const std::size_t i = (left * static_cast<std::size_t>(2 * world.rank().value() + 1) * 7) % many;
      EXPECT_EQ(requests[i].wait().status, Status::ok);
    }
    EXPECT_EQ(wait_all(requests), Status::ok);
    for (std::size_t i = 0; i < many; ++i) {
      EXPECT_EQ(values[i], std::vector<double>(values[i].size(), i % 7 == 0 ? 1.0 : 3.0)) << i;
    }
  });
}

TEST(SharedCollectives, ARootMayRunAheadOfItsReaders) {
  as_ranks(3, [](Communicator& world) {
    for (int i = 0; i < 500; ++i) {
      const std::size_t count = counts[static_cast<std::size_t>(i) % 4];
      std::vector<int> values(count, world.rank() == 1 ? i : -1);
      ASSERT_EQ(world.broadcast(values, Rank{1}), Status::ok);
      ASSERT_EQ(values, std::vector<int>(count, i));
    }
  });
}

TEST(SharedCollectives, WorkInMoreCommunicatorsThanThereAreBoards) {
  as_ranks(3, [](Communicator& world) {
    std::vector<Communicator> several;
    for (int i = 0; i < 20; ++i) {
      several.push_back(i % 2 == 0 ? world.duplicate() : std::move(*world.split(0, -world.rank().value())));
      ASSERT_NO_FATAL_FAILURE(expect_sum(several.back(), 3));
    }
    for (Communicator& each : several) ASSERT_NO_FATAL_FAILURE(expect_sum(each, 2000));
  });
}

// A rank may make the next group while another rank has not yet read the last line of the previous group.
TEST(SharedCollectives, GroupsThatReuseTheSameBoardsDoNotMixTheirData) {
  as_ranks(4, [](Communicator& world) {
    for (int i = 0; i < 60; ++i) {
      auto half = world.split((world.rank().value() + i) % 2, 0);
      int value = half->group().at(Rank{0}) == world.rank().value() ? 1000 + i : 0;
      ASSERT_EQ(half->broadcast(value, Rank{0}), Status::ok);
      ASSERT_EQ(value, 1000 + i);
      ASSERT_NO_FATAL_FAILURE(expect_sum(*half, counts[static_cast<std::size_t>(i) % counts.size()]));
    }
  });
}

/// Ranks that are threads of this process. One enters a collective late: once the others sleep.
class Sleepers {
 public:
  /// Called by a rank that is about to wait.
  void goes_to_sleep(Job& job) {
    Rank& rank = ranks_[job.rank().index()];
    rank.sleeps = job.statistics().sleeps;
    rank.job.store(&job);
  }
  /// Called by the late rank.
  void await(std::size_t index) {
    Rank& rank = ranks_[index];
    while (rank.job.load() == nullptr || rank.job.load()->statistics().sleeps == rank.sleeps) {
      std::this_thread::yield();
    }
    rank.job.store(nullptr);
  }

 private:
  struct Rank {
    std::uint64_t sleeps = 0;  // the number of sleeps before the wait; `job` publishes it
    std::atomic<Job*> job{nullptr};
  };
  std::array<Rank, 3> ranks_;
};

TEST(SharedCollectives, WakeTheRanksThatSleepInThem) {
  constexpr int turns =
      10;  // several, as a late doorbell of the previous collective can wake a sleeping rank for a moment
  for (const std::size_t count : counts) {
    Sleepers sleepers;
    run_as_threads(3, [&](Job& job) {
      Communicator world(job);
      for (const bool broadcast : {false, true}) {
        int both_woken = 0;
        for (int turn = 0; turn < turns; ++turn) {
          if (job.rank() != 0) sleepers.goes_to_sleep(job);
          if (job.rank() == 0) {
            sleepers.await(1);
            sleepers.await(2);
          }
          const auto wake_ups = job.statistics().wake_ups;
          auto values = ones(count);
          EXPECT_EQ(broadcast ? world.broadcast(values, Rank{0}) : world.all_reduce(values), Status::ok);
          both_woken += job.statistics().wake_ups >= wake_ups + 2 ? 1 : 0;
          EXPECT_EQ(world.barrier(), Status::ok);
        }
        if (job.rank() == 0) {
          EXPECT_GT(both_woken, 0);
        }
      }
    });
  }
}

// Another thread of the rank sleeps in a receive and holds the progress lock. The doorbell wakes that thread, which
// must pass on the board's news to the thread in the collective.
TEST(SharedCollectives, ProceedBesideAThreadThatWaitsForAMessage) {
  for (const bool started : {false, true}) {
    as_ranks(2, [started](Communicator& world) {
      const int peer = 1 - world.rank().value();
      int message = 0;
      std::thread receiver([&] { EXPECT_EQ(world.receive(message, Rank{peer}, Tag{5}).status, Status::ok); });
      for (int i = 0; i < 300; ++i) {
        if (!started) {
          ASSERT_EQ(world.barrier(), Status::ok);
          continue;
        }
        double value = 1;
        Request request = world.start_all_reduce(value);
        ASSERT_EQ(request.wait().status, Status::ok);
        ASSERT_EQ(value, 2);
      }
      EXPECT_EQ(world.send(peer + 40, Rank{peer}, Tag{5}), Status::ok);
      receiver.join();
      EXPECT_EQ(message, world.rank() + 40);
    });
  }
}

TEST(SharedCollectives, AbandoningManyInReverseOrderFreesTheBoards) {
  as_ranks(2, [](Communicator& world) {
    std::array<int, 100> values{};
    try {
      std::array<Request, 100> requests;  // the destructor destroys the last one first
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (world.rank() == 1) requests[i] = world.start_broadcast(values[i], Rank{0});
      }
      if (world.rank() == 1) throw std::runtime_error("given up");
    } catch (const std::runtime_error&) {
    }
    if (world.rank() == 0) {
      for (int& value : values) (void)world.broadcast(value, Rank{0});
    }
    ASSERT_NO_FATAL_FAILURE(expect_sum(world, 6));
  });
}

// Ranks 0 and 1 wait for two ranks that do not come: rank 3 dies, and rank 2 then fails and takes no part.
TEST(SharedCollectives, EndWhenARankDiedAndAnotherDoesNotTakePart) {
  for (const std::size_t count : counts) {
    for (const bool broadcast : {false, true}) {
      EXPECT_THROW(as_ranks(4,
                            [&](Communicator& world) {
                              auto values = ones(count);
                              if (world.rank() == 3) {
                                // Rank 3 dies without taking part, while the other ranks may already wait for it.
                                int go = 0;
                                ASSERT_EQ(world.receive(go, Rank{2}, Tag{1}).status, Status::ok);
                                throw Killed{};
                              }
                              if (world.rank() == 2) {
                                ASSERT_EQ(world.send(1, Rank{3}, Tag{1}), Status::ok);
                                ASSERT_EQ(world.receive(values, Rank{3}, Tag{2}).status, Status::peer_gone);
                                return;
                              }
                              const Status status =
                                  broadcast ? world.broadcast(values, Rank{2}) : world.all_reduce(values);
                              EXPECT_EQ(status, Status::peer_gone);
                            }),
                   Killed);
    }
  }
}

TEST(SharedCollectives, AnExceptionAbandonsThem) {
  for (const std::size_t count : counts) {
    EXPECT_THROW(as_ranks(3,
                          [&](Communicator& world) {
                            auto values = ones(count);
                            if (world.rank() == 0) {
                              Request request = world.start_all_reduce(values);
                              throw Killed{};
                            }
                            EXPECT_EQ(world.receive(values, Rank{0}, Tag{1}).status, Status::peer_gone);
                            // The dead rank may have shown its part before.
                            const Status status = world.all_reduce(values);
                            EXPECT_TRUE(status == Status::peer_gone || (status == Status::ok && values[0] == 3));
                            EXPECT_EQ(world.all_reduce(values), Status::peer_gone);
                          }),
                 Killed);
  }
}

}  // namespace
}  // namespace tonari
