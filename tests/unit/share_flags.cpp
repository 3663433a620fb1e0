#include "../support/shared.hpp"

#include "fabric/engine.hpp"
#include "share/coherence/heads.hpp"
#include "share/share_runtime.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

// Tests of flags and of ranks that wait for them: remote ranks, which the flag's home tells, and ranks on its host.
namespace tonari {
namespace {

using share::Kind;
using share::Words;
using test::Variant;

constexpr std::uint64_t never = ~std::uint64_t{0};

std::vector<Variant> ways() {
  auto all = test::ways_to_share();
  all.push_back({"TwoAHost", {"TONARI_APART=network", "TONARI_APART_RANKS=2", test::network_setting()}});
  all.push_back({"NetworkNoService", {"TONARI_APART=network", test::network_setting(), "TONARI_SERVICE_THREAD=off"}});
  return all;
}

class SharedFlags : public test::OnEveryWayToShare {};
INSTANTIATE_TEST_SUITE_P(Over, SharedFlags, testing::ValuesIn(ways()), test::name_of);

fabric::Engine& engine_of(Job& job) { return fabric::Engine::of(job.session()); }
/// Returns how many remote waiters this rank has noted for its flags.
std::size_t waiting(Job& job) { return share::ShareRuntime::of(job.session()).flags().waiting(); }
std::size_t remote_ranks(Job& job) {
  std::size_t count = 0;
  for (int rank = 0; rank < job.size(); ++rank) count += engine_of(job).is_remote(rank) ? 1 : 0;
  return count;
}
std::size_t free_tickets(Job& job) {
  fabric::Tickets& tickets = engine_of(job).tickets();
  std::vector<std::uint32_t> taken;
  while (const auto ticket = tickets.take()) taken.push_back(ticket->index);
  for (const std::uint32_t each : taken) tickets.give_back(each);
  return taken.size();
}

TEST_P(SharedFlags, WakeEachWaiterOnceItsValueIsReached) {
  constexpr int ranks = 4;
  constexpr int threads = 3;
  constexpr std::uint64_t last = (ranks - 1) * threads;
  std::atomic<std::uint64_t> reached{0};
  run(ranks, [&](Job& job) {
    const shared_array<std::uint64_t> array(job, last + 1);
    share::flag flag(job);  // its home is rank 0
    if (job.rank() == 0) {
      const std::size_t far = remote_ranks(job) * threads;
      const auto values_of_remote = static_cast<std::uint64_t>(far);  // the remote ranks wait for the highest values
      test::wait_until(job, [&] { return waiting(job) == far; });
      for (std::uint64_t value = 1; value <= last; ++value) {
        array[value] = value;
        reached = value;
        ASSERT_EQ(flag.set(value), Status::ok);
        ASSERT_EQ(waiting(job), std::min(last - value, values_of_remote));
      }
    } else {
      test::in_threads(threads, [&](int thread) {
        const auto value = static_cast<std::uint64_t>((job.rank().value() - 1) * threads + thread + 1);
        EXPECT_EQ(flag.wait(value), Status::ok);
        EXPECT_GE(reached, value);
        EXPECT_EQ(array[value], value);
        EXPECT_EQ(flag.wait(value), Status::ok);
      });
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

// The next rank to set the flag has just returned from its wait, while other ranks begin theirs.
TEST_P(SharedFlags, WakeRanksThatBeginToWaitDuringASet) {
  constexpr int ranks = 4;
  const auto last = static_cast<std::uint64_t>(test::rounds(4000));
  std::atomic<std::uint64_t> reached{0};
  run(ranks, [&](Job& job) {
    share::flag flag(job);
    test::in_threads(2, [&](int thread) {
      for (std::uint64_t value = 1; value <= last; ++value) {
        if (thread == 0 && value % ranks == static_cast<std::uint64_t>(job.rank().value())) {
          reached = value;
          ASSERT_EQ(flag.set(value), Status::ok);
        } else {
          ASSERT_EQ(flag.wait(value), Status::ok);
          ASSERT_GE(reached, value);
        }
      }
    });
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

// All slots but one stay occupied, so each turn's flag gets the slot of the previous turn's flag.
TEST_P(SharedFlags, CanReuseTheSlotsOfDestroyedFlags) {
  constexpr int ranks = 3;
  constexpr std::size_t most = ranks * 4096;
  std::atomic<int> begun{0};
  run(ranks, [&, last = turns(60)](Job& job) {
    std::vector<share::counter> kept;
    while (kept.size() < most - 1) kept.emplace_back(job);
    for (int turn = 1; turn <= last; ++turn) {
      share::flag flag(job);
      const auto value = static_cast<std::uint64_t>(last + 1 - turn);  // less than the previous flag's value
      if (turn % ranks == job.rank()) {
        begun = turn;
        ASSERT_EQ(flag.set(value), Status::ok);
      } else {
        test::in_threads(2, [&](int thread) {
          EXPECT_EQ(flag.wait(thread == 0 ? value : 1), Status::ok);
          EXPECT_GE(begun, turn);
        });
      }
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

TEST_P(SharedFlags, CanBeAwaitedByMoreThreadsThanThereAreTickets) {
  constexpr int threads = fabric::tickets_max / 2 + 20;
  std::atomic<bool> is_set{false};
  run(2, [&](Job& job) {
    share::flag flag(job);
    if (job.rank() == 0) {
      test::wait_until(job, [&] { return waiting(job) >= remote_ranks(job) * fabric::tickets_max / 4; });
      is_set = true;
      ASSERT_EQ(flag.set(1), Status::ok);
    } else {
      test::in_threads(threads, [&](int) {
        EXPECT_EQ(flag.wait(1), Status::ok);
        EXPECT_TRUE(is_set);
      });
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

// When a rank dies, a wait for a value that cannot be reached any more ends with an error. A wait for a value that was
// reached ends with success.
TEST_P(SharedFlags, EndAWaitWhenARankDies) {
  constexpr int ranks = 4;
  constexpr int victim = 2;
  std::atomic<int> come{0};
  std::atomic<int> gave_up{0};
  std::atomic<int> ended{0};
  const auto body = [&](Job& job) {
    job.on_death([](const Death&) {});
    std::array<share::flag, ranks> flags{share::flag(job), share::flag(job), share::flag(job), share::flag(job)};
    ASSERT_EQ(share::barrier(job), Status::ok);
    if (job.rank() == 0) {
      ASSERT_EQ(flags[0].set(1), Status::ok);
    }
    if (job.rank() == victim) test::wait_until(job, [&] { return waiting(job) == remote_ranks(job); });
    test::let_die(job, victim, come);

    EXPECT_EQ(flags[victim].wait(1), Status::peer_gone);
    EXPECT_EQ(flags[victim].wait(1), Status::peer_gone);
    if (job.hosts() > 1) {
      EXPECT_EQ(flags[victim].get().status, Status::peer_gone);
    }
    EXPECT_EQ(flags[0].get().status, Status::ok);
    EXPECT_EQ(flags[0].wait(1), Status::ok);
    for (std::size_t i = 0; i < fabric::tickets_max; ++i) ASSERT_EQ(flags[0].wait(2), Status::peer_gone);
    gave_up.fetch_add(1);
    test::wait_until(job, [&] { return gave_up >= ranks - 1; });
    EXPECT_EQ(free_tickets(job), fabric::tickets_max);
    if (job.rank() == 0) {
      EXPECT_EQ(flags[0].set(2), Status::ok);  // the home replies to the waiters late
    }
    gave_up.fetch_add(1);
    test::wait_until(job, [&] { return gave_up == 2 * (ranks - 1); });
    EXPECT_EQ(flags[0].wait(2), Status::ok);
    EXPECT_EQ(free_tickets(job), fabric::tickets_max);
    ended.fetch_add(1);
    test::wait_until(job, [&] { return ended == ranks - 1; });
  };
  EXPECT_THROW(run(ranks, body), test::Killed);
}

TEST_P(SharedFlags, StayCorrectUnderForgedMessages) {
  constexpr int ranks = 3;
  constexpr int liar = 2;
  std::atomic<bool> is_set{false};
  run(ranks, [&](Job& job) {
    Communicator world(job);
    share::flag flag(job);  // its home is rank 0
    if (job.rank() == liar) {
      const auto tell = [&](int victim, Kind kind, const Words& words) {
        const auto lane = kind == Kind::share_reached ? fabric::Lane::reply : fabric::Lane::request;
        while (engine_of(job).send(victim, share::head_of(kind, liar, words), lane) == Status::again) {
          engine_of(job).progress();
        }
      };
      const auto ask = [&](std::uint64_t index, std::uint32_t ticket, std::uint64_t value) {
        Words words;
        words.first = index;
        words.ticket.index = ticket;
        words.extra = value;
        tell(0, Kind::share_await, words);
        tell(0, Kind::share_set, words);
        tell(1, Kind::share_reached, words);
      };
      for (const std::uint64_t index : {std::uint64_t{share::slots_per_rank}, std::uint64_t{1} << 58, never}) {
        ask(index, 1, 0);
      }
      for (const std::uint32_t ticket : {static_cast<std::uint32_t>(fabric::tickets_max), ~std::uint32_t{0}}) {
        ask(0, ticket, 0);
      }
      for (std::uint64_t index = 0; index < 8; ++index) {
        for (std::uint32_t ticket = 0; ticket < fabric::tickets_max; ++ticket) ask(index, ticket, never - index);
      }
      ASSERT_EQ(world.send(std::span<const int>(), Rank{0}), Status::ok);
    } else if (job.rank() == 0) {
      ASSERT_EQ(world.receive(std::span<int>(), Rank{liar}).status, Status::ok);
      const std::size_t honest = engine_of(job).is_remote(1) ? 1 : 0;
      test::wait_until(job, [&] { return waiting(job) >= fabric::tickets_max + honest; });
      EXPECT_EQ(waiting(job), fabric::tickets_max + honest);
      is_set = true;
      ASSERT_EQ(flag.set(1), Status::ok);
      EXPECT_EQ(waiting(job), fabric::tickets_max);
    } else {
      EXPECT_EQ(flag.wait(1), Status::ok);
      EXPECT_TRUE(is_set);
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

}  // namespace
}  // namespace tonari
