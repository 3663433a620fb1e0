#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <thread>

namespace tonari {
namespace {

using test::pattern;

class Threads : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Threads, testing::ValuesIn(test::variants_and_network()), test::name_of);

/// Runs `body(number)` in `count` threads of this rank. The calling thread is number 0.
void in_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::jthread> others;
  for (int number = 1; number < count; ++number) others.emplace_back([&body, number] { body(number); });
  body(0);
}

TEST_P(Threads, EachExchangesMessagesOnItsOwnTag) {
  constexpr int threads = 4;
  run(2, [](Communicator& world) {
    in_threads(threads, [&world](int number) {
      test::Random random(test::seed() + static_cast<std::uint64_t>(number));  // both ranks draw the same numbers
      const int other = 1 - world.rank().value();
      for (int i = 0; i < test::rounds(60); ++i) {
        const std::size_t bytes =
            test::between(random, 0, 9) == 0 ? test::between(random, 0, 200000) : test::between(random, 0, 5000);
        const auto mine = pattern(bytes, static_cast<std::size_t>(i * 8 + number * 2 + world.rank().value()));
        std::vector<std::byte> theirs(bytes);
        const unsigned manner = static_cast<unsigned>(test::between(random, 0, 2));
        if (manner == 0) {
          Request request = world.start_receive(theirs, Rank{other}, Tag{number});
          ASSERT_EQ(world.send(mine, Rank{other}, Tag{number}), Status::ok);
          ASSERT_EQ(request.wait().status, Status::ok);
        } else if (manner == 1) {
          Request request = world.start_send(mine, Rank{other}, Tag{number});
          ASSERT_EQ(world.receive(theirs, Rank{other}, Tag{number}).status, Status::ok);
          ASSERT_EQ(request.wait().status, Status::ok);
        } else {
          std::array requests{world.start_send(mine, Rank{other}, Tag{number}),
                              world.start_receive(theirs, Rank{other}, Tag{number})};
          ASSERT_EQ(wait_all(requests), Status::ok);
        }
        ASSERT_TRUE(theirs == pattern(bytes, static_cast<std::size_t>(i * 8 + number * 2 + other)));
      }
    });
  });
}

TEST_P(Threads, AThreadThatLeavesDoesNotStrandTheWaitingOnes) {
  // Each thread waits for its own message. The messages come one at a time, each after the previous one was received.
  // So a thread that leaves must pass the progress lock to one that still waits, while another thread is not in the
  // library at all.
  constexpr int threads = 5;
  run(2, [](Communicator& world) {
    if (world.rank() == 0) {
      test::Random random(test::seed());
      for (int turn = 0; turn < test::rounds(100); ++turn) {
        std::array<int, threads> order{};
        for (int i = 0; i < threads; ++i) order[static_cast<std::size_t>(i)] = i;
        std::shuffle(order.begin(), order.end(), random);
        int back = 0;
        for (const int number : order) {
          ASSERT_EQ(world.send(turn, Rank{1}, Tag{number}), Status::ok);
          ASSERT_EQ(world.receive(back, Rank{1}, Tag{number}).status, Status::ok);
          ASSERT_EQ(back, turn);
        }
      }
      return;
    }
    std::atomic<int> running = threads;
    const std::jthread computing([&running] {
      while (running.load() != 0) std::this_thread::yield();
    });
    in_threads(threads, [&](int number) {
      for (int turn = 0; turn < test::rounds(100); ++turn) {
        int value = -1;
        ASSERT_EQ(world.receive(value, Rank{0}, Tag{number}).status, Status::ok);
        ASSERT_EQ(value, turn);
        ASSERT_EQ(world.send(value, Rank{0}, Tag{number}), Status::ok);
      }
      --running;
    });
  });
}

TEST_P(Threads, ShareOneTagWithoutLosingOrDuplicatingAMessage) {
  constexpr int threads = 3;
  const int messages = test::rounds(300);
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(threads * messages));
  run(2, [&](Communicator& world) {
    in_threads(threads, [&](int number) {
      for (int i = 0; i < messages; ++i) {
        std::array<int, 20> values{};
        if (world.rank() == 0) {
          values.fill(number * messages + i);
          ASSERT_EQ(world.send(values, Rank{1}), Status::ok);
        } else {
          ASSERT_EQ(world.receive(values).status, Status::ok);
          ++seen.at(static_cast<std::size_t>(values.front()));
          ASSERT_EQ(values.front(), values.back());
        }
      }
    });
  });
  for (const auto& each : seen) ASSERT_EQ(each.load(), 1);
}

TEST_P(Threads, EachSeesTheMessageItProbesFor) {
  constexpr int threads = 4;
  run(2, [](Communicator& world) {
    for (int turn = 0; turn < test::rounds(20); ++turn) {
      if (world.rank() == 0) {
        ASSERT_EQ(world.send(turn, Rank{1}, Tag{turn}), Status::ok);
      } else {
        in_threads(threads, [&](int) {
          const Result<Envelope> found = world.probe(Rank{0}, Tag{turn});
          ASSERT_EQ(found.status, Status::ok);
          ASSERT_EQ(found.value.bytes, sizeof turn);
        });
        int value = -1;
        ASSERT_EQ(world.receive(value, Rank{0}, Tag{turn}).status, Status::ok);
        ASSERT_EQ(value, turn);
      }
    }
  });
}

TEST_P(Threads, MayWaitForTheRequestsOfAnotherThread) {
  constexpr std::size_t bytes = 300000;
  run(2, [](Communicator& world) {
    const int other = 1 - world.rank().value();
    for (int turn = 0; turn < test::rounds(10); ++turn) {
      const auto mine = pattern(bytes, static_cast<std::size_t>(turn));
      std::vector<std::byte> theirs(bytes);
      std::vector<int> values(4000, world.rank() == 0 ? turn : -1);
      std::array requests{world.start_send(mine, Rank{other}, Tag{1}), world.start_receive(theirs, Rank{other}, Tag{1}),
                          world.start_broadcast(values, Rank{0})};
      std::jthread waiter([&requests] { ASSERT_EQ(wait_all(requests), Status::ok); });
      // The thread that started the requests waits for another message in the meantime.
      int value = -1;
      Request last = world.start_receive(value, Rank{other}, Tag{2});
      ASSERT_EQ(world.send(turn, Rank{other}, Tag{2}), Status::ok);
      ASSERT_EQ(last.wait().status, Status::ok);
      waiter.join();
      ASSERT_TRUE(theirs == mine);
      ASSERT_EQ(values, std::vector<int>(4000, turn));
    }
  });
}

}  // namespace
}  // namespace tonari
