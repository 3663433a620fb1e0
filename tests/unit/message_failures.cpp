#include "../support/collective.hpp"
#include "../support/random.hpp"
#include "../support/ranks.hpp"
#include "fabric/engine.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <latch>
#include <string>
#include <thread>

namespace tonari {
namespace {

using test::Killed;
using test::pattern;

class Death : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Death, testing::ValuesIn(test::variants_and_network()), test::name_of);

class Leaver : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Leaver, testing::ValuesIn(test::variants_and_network()), test::name_of);

/// Runs `body` as ranks of which one throws Killed.
void as_ranks_with_a_death(int ranks, const std::function<void(Communicator&)>& body, const test::Settings& settings) {
  EXPECT_THROW(test::as_ranks(ranks, body, settings), Killed);
}

constexpr int go_tag = 50;

/// Messages of all sizes between two living ranks: one sends, the other receives.
void expect_exchange(Communicator& world, int giver, int taker) {
  for (const std::size_t bytes : {4, 500, 5000, 100000}) {
    const auto sent = pattern(bytes, bytes);
    if (world.rank() == giver) {
      ASSERT_EQ(world.send(sent, Rank{taker}, Tag{60}), Status::ok);
    } else if (world.rank() == taker) {
      std::vector<std::byte> received(bytes);
      ASSERT_EQ(world.receive(received, Rank{giver}, Tag{60}).status, Status::ok);
      ASSERT_TRUE(received == sent);
    }
  }
}

TEST_P(Death, EndsEveryOperationThatNeedsTheDeadRankAndNoOther) {
  as_ranks_with_a_death(
      3,
      [](Communicator& world) {
        constexpr int victim = 2;
        if (world.rank() == victim) {
          for (const int peer : {0, 1})
            ASSERT_EQ(world.receive(std::span<int>(), Rank{peer}, Tag{go_tag}).status, Status::ok);
          throw Killed{};
        }
        int value = 0;
        std::array<int, 3> all{};
        std::vector<int> many(30000);
        std::vector<int> many_back(30000);
        // These operations start before the death and wait for the dead rank.
        std::array requests{
            world.start_receive(value, Rank{victim}, Tag{1}),
            world.start_receive(value, Rank::any, Tag{1}),
            world.start_send(many, Rank{victim}, Tag{2}),
            world.start_send(value, Rank{victim}, Tag{2}, SendMode::when_posted),
            world.start_receive(many_back, Rank{victim}, Tag{2}),
            world.start_barrier(),
            world.start_broadcast(many_back, Rank{victim}),
            world.start_gather(value, all, world.rank()),
            world.start_all_reduce(value),
        };
        ASSERT_EQ(world.send(std::span<const int>(), Rank{victim}, Tag{go_tag}), Status::ok);
        for (Request& request : requests) EXPECT_EQ(request.wait().status, Status::peer_gone);

        // These operations start after the death.
        EXPECT_EQ(world.send(value, Rank{victim}), Status::peer_gone);
        EXPECT_EQ(world.send(many, Rank{victim}), Status::peer_gone);
        EXPECT_EQ(world.start_send(value, Rank{victim}).wait().status, Status::peer_gone);
        EXPECT_EQ(world.receive(value, Rank{victim}, Tag{1}).status, Status::peer_gone);
        EXPECT_EQ(world.probe(Rank{victim}, Tag{1}).status, Status::peer_gone);
        EXPECT_FALSE(world.probe_now(Rank{victim}, Tag{1}).has_value());
        EXPECT_EQ(world.barrier(), Status::peer_gone);
        EXPECT_THROW((void)world.duplicate(), SetupError);

        ASSERT_NO_FATAL_FAILURE(expect_exchange(world, 0, 1));
        ASSERT_NO_FATAL_FAILURE(expect_exchange(world, 1, 0));
      },
      GetParam().settings);
}

TEST_P(Death, BeforeTheFirstCommunicatorIsReportedByIt) {
  const auto body = [](Job& job) {
    if (job.rank() == 0) throw Killed{};
    std::latch heard{1};
    (void)fabric::Engine::of(job.session());
    job.on_death([&](const tonari::Death&) { heard.count_down(); });
    heard.wait();
    Communicator world(job);
    int value = 0;
    EXPECT_EQ(world.receive(value, Rank{0}).status, Status::peer_gone);
    job.on_death(nullptr);
  };
  EXPECT_THROW(run_as_threads(2, body, GetParam().settings), Killed);
}

/// True when the receivers' hosts have acknowledged all bytes that this process has sent over TCP.
bool nothing_is_on_its_way() {
  return std::ranges::all_of(std::filesystem::directory_iterator("/proc/self/fd"), [](const auto& entry) {
    tcp_info info{};
    socklen_t bytes = sizeof info;
    const int number = std::stoi(entry.path().filename());
    return ::getsockopt(number, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 || info.tcpi_unacked == 0;
  });
}

/// Waits until rank 0 is told of a death. Keeps the thread between two polls until the rank is marked dead and the
/// service thread waits for this thread's polls.
struct HeldBetweenPolls {
  job::Arena& arena;
  int victim;
  std::atomic<bool>& held;
  const std::atomic<bool>& told;

  fabric::Step step() noexcept { return told ? fabric::Step::done : fabric::Step::waiting; }
  [[nodiscard]] bool ready() const noexcept {
    if (!held.exchange(true)) hold();
    return told;
  }
  bool attach(fabric::Sleeper*) noexcept { return !told; }
  void slow() noexcept {}

 private:
  void hold() const noexcept {
    constexpr std::uint32_t rings = 100;  // more than a death causes by itself
    while (arena.block(victim).phase.load() != job::Phase::dead) std::this_thread::yield();
    const std::uint32_t before = arena.block(0).doorbell.load();
    while (arena.block(0).doorbell.load() - before < rings && !told) std::this_thread::yield();
  }
};

TEST(RemoteDeath, IsReportedAfterTheMessagesInTheSocket) {
  constexpr int victim = 2;
  constexpr std::size_t messages = 100;  // more than one poll of the network delivers
  std::atomic<bool> held{false};
  std::atomic<bool> told{false};
  const auto body = [&](Job& job) {
    Communicator world(job);
    int value = 0;
    if (job.rank() == victim) {
      ASSERT_EQ(world.send(value, Rank{0}), Status::ok);  // makes the connection
      ASSERT_EQ(world.receive(value, Rank{0}).status, Status::ok);
      while (!held) std::this_thread::yield();
      for (std::size_t i = 0; i < messages; ++i) EXPECT_EQ(world.send(value, Rank{0}, Tag{1}), Status::ok);
      while (!nothing_is_on_its_way()) std::this_thread::yield();
      throw Killed{};
    }
    if (job.rank() != 0) return;  // rank 1 is a neighbour, so rank 0 polls the network at each eighth poll only
    job.on_death([&](const tonari::Death&) { told = true; });
    ASSERT_EQ(world.receive(value, Rank{victim}).status, Status::ok);
    std::array<int, messages> values{};
    std::vector<Request> requests;
    for (int& each : values) requests.push_back(world.start_receive(each, Rank{victim}, Tag{1}));
    ASSERT_EQ(world.send(value, Rank{victim}), Status::ok);

    HeldBetweenPolls waiting{job.session().arena(), victim, held, told};
    fabric::Engine::of(job.session()).wait(waiting);

    for (Request& request : requests) EXPECT_EQ(request.wait().status, Status::ok);
    job.on_death(nullptr);
  };
  const test::Settings settings{"TONARI_APART=network", "TONARI_APART_RANKS=2", "TONARI_NETWORK=tcp"};
  EXPECT_THROW(run_as_threads(3, body, settings), Killed);
}

TEST_P(Death, WakesSleepingThreads) {
  // Several threads of a rank wait, each in another kind of call. Rank 1 dies when all have slept for a while.
  as_ranks_with_a_death(
      3,
      [](Communicator& world) {
        if (world.rank() == 1) {
          ASSERT_EQ(world.receive(std::span<int>(), Rank{2}, Tag{go_tag}).status, Status::ok);
          throw Killed{};
        }
        if (world.rank() == 2) {
          // Yields more often than rank 0 does before it sleeps, so rank 0 must be asleep afterwards.
          for (int i = 0; i < 5000; ++i) std::this_thread::yield();
          ASSERT_EQ(world.send(std::span<const int>(), Rank{1}, Tag{go_tag}), Status::ok);
          return;
        }
        std::vector<std::jthread> threads;
        threads.emplace_back([&world] {
          int value = 0;
          EXPECT_EQ(world.receive(value, Rank{1}, Tag{1}).status, Status::peer_gone);
        });
        threads.emplace_back([&world] { EXPECT_EQ(world.probe(Rank{1}, Tag{2}).status, Status::peer_gone); });
        threads.emplace_back(
            [&world] { EXPECT_EQ(world.send(std::vector<int>(50000), Rank{1}, Tag{3}), Status::peer_gone); });
        EXPECT_EQ(world.barrier(), Status::peer_gone);
      },
      GetParam().settings);
}

TEST_P(Death, EndsAllSendsQueuedForTheDeadRank) {
  // More messages than the dead rank's ring, and this rank's bulk memory and tickets, can hold.
  as_ranks_with_a_death(
      2,
      [](Communicator& world) {
        if (world.rank() == 1) {
          ASSERT_EQ(world.receive(std::span<int>(), Rank{0}, Tag{go_tag}).status, Status::ok);
          throw Killed{};
        }
        ASSERT_EQ(world.send(std::span<const int>(), Rank{1}, Tag{go_tag}), Status::ok);
        std::vector<Request> requests;
        const auto bytes = pattern(20000, 1);
        for (std::size_t i = 0; i < 4000; ++i) {
          requests.push_back(world.start_send(std::span(bytes).first(i % 3 == 0 ? 20000 : i % 700), Rank{1}, Tag{1}));
        }
        ASSERT_EQ(world.start_send(bytes, Rank{1}, Tag{1}, SendMode::when_posted).wait().status, Status::peer_gone);
        for (Request& request : requests) {
          const Status status = request.wait().status;
          ASSERT_TRUE(status == Status::ok || status == Status::peer_gone) << to_string(status);
        }
      },
      GetParam().settings);
}

TEST_P(Leaver, ItsMessagesArriveAndNoRankWaitsForIt) {
  run(2, [](Communicator& world) {
    const std::span<int> nothing;  // an empty message, whose send never waits, whatever the settings
    if (world.rank() == 1) {
      EXPECT_EQ(world.send(nothing, Rank{0}, Tag{1}), Status::ok);
      EXPECT_EQ(world.broadcast(nothing, Rank{1}), Status::ok);
      return;  // leaves the job
    }
    int value = 0;
    const std::vector<int> many(30000);
    std::array requests{world.start_receive(value, Rank{1}, Tag{2}), world.start_send(many, Rank{1}, Tag{3}),
                        world.start_send(value, Rank{1}, Tag{3}, SendMode::when_posted),
                        world.start_receive(value, Rank{1}, Tag{4})};
    for (Request& request : requests) EXPECT_EQ(request.wait().status, Status::peer_gone);
    EXPECT_EQ(world.send(many, Rank{1}, Tag{3}), Status::peer_gone);
    EXPECT_EQ(world.send(value, Rank{1}, Tag{3}), Status::peer_gone);
    EXPECT_EQ(world.receive(value, Rank{1}, Tag{4}).status, Status::peer_gone);
    EXPECT_EQ(world.probe(Rank{1}, Tag{4}).status, Status::peer_gone);

    EXPECT_EQ(world.receive(nothing, Rank::any, Tag{1}).status, Status::ok);
    EXPECT_EQ(world.broadcast(nothing, Rank{1}), Status::ok);
    EXPECT_EQ(world.barrier(), Status::peer_gone);
  });
}

TEST_P(Death, ByAnExceptionDoesNotWaitForPostedReceives) {
  as_ranks_with_a_death(
      2,
      [](Communicator& world) {
        int value = 0;
        if (world.rank() == 1) {
          const Request from_one = world.start_receive(value, Rank{0}, Tag{1});
          const Request from_any = world.start_receive(value);
          const Request together = world.start_broadcast(value, Rank{0});
          throw Killed{};
        }
        EXPECT_EQ(world.receive(value, Rank{1}, Tag{2}).status, Status::peer_gone);
      },
      GetParam().settings);
}

TEST_P(Death, DuringCollectivesDoesNotHarmTheOtherRanks) {
  constexpr int ranks = 5;
  for (int turn = 0; turn < test::rounds(12); ++turn) {
    as_ranks_with_a_death(
        ranks,
        [turn](Communicator& world) {
          test::Random random(test::seed() * 1000 +
                              static_cast<std::uint64_t>(turn));  // all ranks draw the same numbers
          const int victim = static_cast<int>(test::between(random, 0, ranks - 1));
          const std::size_t last = test::between(random, 0, 20);  // the others start this one without the victim
          for (std::size_t i = 0;; ++i) {
            const std::size_t count =
                test::chance(random, 50) ? test::between(random, 0, 40) : test::between(random, 0, 30000);
            if (world.rank() == victim && i == last) throw Killed{};
            if (test::collective(world, i, count) != Status::ok) break;
          }
          // The other ranks exchange messages in a ring without the victim.
          std::vector<int> living;
          for (int rank = 0; rank < ranks; ++rank) {
            if (rank != victim) living.push_back(rank);
          }
          for (std::size_t i = 0; i < living.size(); ++i) {
            ASSERT_NO_FATAL_FAILURE(expect_exchange(world, living[i], living[(i + 1) % living.size()]));
          }
        },
        GetParam().settings);
  }
}

}  // namespace
}  // namespace tonari
