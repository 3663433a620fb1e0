#include "../support/exchange.hpp"
#include "../support/random.hpp"
#include "../support/ranks.hpp"
#include "message/creation.hpp"
#include "message/message_runtime.hpp"
#include "message/requests.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <numeric>
#include <thread>

// Requests beyond waiting for one: detached, foreign, several at once, cancelled sends.
namespace tonari {
namespace {

using message::Communicators;
using message::MessageRuntime;
using message::Operation;
using message::Requests;
using test::Killed;
using test::pattern;
using test::Random;

class Detached : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Detached, testing::ValuesIn(test::variants_and_network()), test::name_of);

class Foreign : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Foreign, testing::ValuesIn(test::variants_and_network()), test::name_of);

class Several : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Several, testing::ValuesIn(test::variants_and_network()), test::name_of);

constexpr int token_tag = 90;

void detach(Request request) {
  Requests::detach(request);
  EXPECT_TRUE(request.complete());
  EXPECT_EQ(request.wait(), Result<Envelope>{});
}

/// A buffer of ints that a message fills, in one piece or with gaps.
struct Data {
  std::vector<int> ints;
  bool has_gaps;

  Data(std::size_t count, bool gaps) : ints(gaps ? 2 * count : count), has_gaps(gaps) {}
  [[nodiscard]] Strided<int> every_second() { return {ints, ints.size() / 2, 1, 2}; }
  void fill(int first) {
    for (std::size_t i = 0; i < ints.size(); i += has_gaps ? 2 : 1) ints[i] = first++;
  }
  [[nodiscard]] bool is_filled(int first) const {
    for (std::size_t i = 0; i < ints.size(); i += has_gaps ? 2 : 1) {
      if (ints[i] != first++) return false;
    }
    return true;
  }
  Request start_send(Communicator& world, Rank to, Tag tag, SendMode mode) {
    return has_gaps ? world.start_send(every_second(), to, tag, mode) : world.start_send(ints, to, tag, mode);
  }
  Request start_receive(Communicator& world, Rank from, Tag tag) {
    return has_gaps ? world.start_receive(every_second(), from, tag) : world.start_receive(ints, from, tag);
  }
};

/// Random messages; both ranks draw the same.
struct Messages {
  explicit Messages(Random& random) {
    for (std::size_t i = 0; i < 12; ++i) {
      const std::size_t count = test::sizes[test::between(random, 0, test::sizes.size() - 1)] / sizeof(int);
      sent.emplace_back(count, test::chance(random, 30));
      received.emplace_back(count, test::chance(random, 30));
      sent.back().fill(static_cast<int>(random() % 1000));
      modes.push_back(test::chance(random, 30) ? SendMode::when_posted : SendMode::standard);
    }
  }
  [[nodiscard]] int first_of(std::size_t i) const { return sent[i].ints.empty() ? 0 : sent[i].ints.front(); }

  std::vector<Data> sent;
  std::vector<Data> received;
  std::vector<SendMode> modes;
};

TEST_P(Detached, SendsGoOnWhileTheProgramComputes) {
  const bool has_service = GetParam().name != "NoService" && GetParam().name != "NetworkNoService";
  const std::uint64_t seed = test::seed();
  std::atomic<int> rounds_received{0};
  run(2, [&](Communicator& world) {
    Random random(seed);
    for (int round = 0; round < test::rounds(5); ++round) {
      Messages messages(random);
      if (world.rank() == 0) {
        for (std::size_t i = 0; i < messages.sent.size(); ++i) {
          detach(messages.sent[i].start_send(world, Rank{1}, Tag{i}, messages.modes[i]));
        }
        while (has_service && rounds_received.load() != round + 1) std::this_thread::yield();
        ASSERT_EQ(world.receive(std::span<int>(), Rank{1}, Tag{token_tag}).status, Status::ok);
      } else {
        for (std::size_t i = messages.sent.size(); i-- > 0;) {
          ASSERT_EQ(messages.received[i].start_receive(world, Rank{0}, Tag{i}).wait().status, Status::ok);
          ASSERT_TRUE(messages.received[i].is_filled(messages.first_of(i))) << i;
        }
        ++rounds_received;
        ASSERT_EQ(world.send(std::span<const int>(), Rank{0}, Tag{token_tag}), Status::ok);
      }
    }
  });
}

TEST_P(Detached, ReceivesAreCompleteBeforeALaterMessageIs) {
  const std::uint64_t seed = test::seed();
  run(2, [&](Communicator& world) {
    Random random(seed);
    for (int round = 0; round < test::rounds(10); ++round) {
      Messages messages(random);
      const bool posted_first = test::chance(random, 50);
      const std::size_t way = test::between(random, 0, 5);
      if (world.rank() == 0) {
        if (posted_first) {
          ASSERT_EQ(world.receive(std::span<int>(), Rank{1}, Tag{token_tag}).status, Status::ok);
        }
        for (std::size_t i = 0; i < messages.sent.size(); ++i) {
          ASSERT_EQ(messages.sent[i].start_send(world, Rank{1}, Tag{i}, messages.modes[i]).wait().status, Status::ok);
        }
        ASSERT_EQ(world.send(round, Rank{1}, Tag{token_tag}), Status::ok);
      } else {
        for (std::size_t i = 0; i < messages.sent.size(); ++i) {
          detach(messages.received[i].start_receive(world, Rank{0}, Tag{i}));
        }
        if (posted_first) {
          ASSERT_EQ(world.send(std::span<const int>(), Rank{0}, Tag{token_tag}), Status::ok);
        }
        int last = -1;
        if (way == 0) {
          ASSERT_EQ(world.receive(last, Rank{0}, Tag{token_tag}).status, Status::ok);
        } else {
          std::array requests{world.start_receive(last, Rank{0}, Tag{token_tag})};
          std::array<std::size_t, 1> completed{};
          if (way == 1) {
            while (!requests[0].test().has_value()) std::this_thread::yield();
          } else if (way == 2) {
            ASSERT_EQ(wait_any(requests), 0U);
          } else if (way == 3) {
            while (test_some(requests, completed) == 0) std::this_thread::yield();
          } else if (way == 4) {
            while (!test_all(requests)) std::this_thread::yield();
          } else {
            ASSERT_EQ(wait_all(requests), Status::ok);
          }
        }
        ASSERT_EQ(last, round);
        for (std::size_t i = 0; i < messages.sent.size(); ++i) {
          ASSERT_TRUE(messages.received[i].is_filled(messages.first_of(i))) << i << " way " << way;
        }
      }
    }
  });
}

TEST_P(Detached, ReceivesAreCompleteAlsoIfAnotherThreadCopies) {
  constexpr std::size_t messages = 8;
  constexpr std::size_t ints = 2900;  // just short enough to be sent before its receive is posted
  run(2, [](Communicator& world) {
    const std::jthread polling([&world](const std::stop_token& stops) {
      while (!stops.stop_requested()) (void)world.probe_now(Rank::any, Tag{1000});
    });
    for (int round = 0; round < test::rounds(60); ++round) {
      std::vector<std::vector<int>> buffers(messages, std::vector<int>(ints, round));
      if (world.rank() == 0) {
        ASSERT_EQ(world.receive(std::span<int>(), Rank{1}, Tag{token_tag}).status, Status::ok);
        for (const auto& buffer : buffers) ASSERT_EQ(world.send(buffer, Rank{1}, Tag{1}), Status::ok);
        ASSERT_EQ(world.send(round, Rank{1}, Tag{token_tag}), Status::ok);
      } else {
        std::vector<std::vector<int>> received(messages, std::vector<int>(ints, -1));
        for (auto& buffer : received) detach(world.start_receive(buffer, Rank{0}, Tag{1}));
        ASSERT_EQ(world.send(std::span<const int>(), Rank{0}, Tag{token_tag}), Status::ok);
        int last = -1;
        ASSERT_EQ(world.receive(last, Rank{0}, Tag{token_tag}).status, Status::ok);
        ASSERT_EQ(last, round);
        ASSERT_TRUE(received == buffers) << round;
      }
    }
  });
}

TEST_P(Detached, OperationsOutliveTheirCommunicator) {
  run(2, [](Communicator& world) {
    const Rank other = world.neighbour(1);
    std::vector<int> sent(100000, world.rank().value());
    std::vector<int> received(sent.size());
    {
      Communicator copy = world.duplicate();
      const std::weak_ptr<message::Context> context = Communicators::context(copy);
      if (world.rank() == 0) {
        detach(copy.start_send(sent, other, Tag{1}));
        detach(copy.start_receive(received, other, Tag{1}));
      }
      { const Communicator ended = std::move(copy); }
      EXPECT_EQ(context.expired(), world.rank() == 1);  // rank 1 has nothing to receive or send
    }
    if (world.rank() == 0) {
      ASSERT_EQ(world.receive(std::span<int>(), other, Tag{token_tag}).status, Status::ok);
    } else {
      ASSERT_EQ(world.send(std::span<const int>(), other, Tag{token_tag}), Status::ok);
    }
  });
}

TEST_P(Detached, OperationsThatMeetNobodyEndWithTheJob) {
  std::array<std::vector<int>, 2> buffers{std::vector<int>(100000), std::vector<int>(100000)};
  run(2, [&buffers](Communicator& world) {
    std::vector<int>& buffer = buffers[world.rank().index()];
    const Rank other = world.neighbour(1);
    detach(world.start_receive(buffer, other, Tag{1}));
    detach(world.start_send(buffer, other, Tag{2}));
    detach(world.start_send(buffer, other, Tag{3}, SendMode::when_posted));
    detach(world.start_receive(buffer, Rank::any, Tag{4}));
  });
}

TEST_P(Detached, OperationsWithADeadRankEnd) {
  EXPECT_THROW(test::as_ranks(
                   3,
                   [](Communicator& world) {
                     constexpr int victim = 2;
                     if (world.rank() == victim) throw Killed{};
                     const std::vector<int> sent(100000);
                     std::vector<int> received(sent.size());
                     for (int i = 0; i < 20; ++i) {
                       detach(world.start_send(sent, Rank{victim}, Tag{i}));
                       detach(world.start_receive(received, Rank{victim}, Tag{i}));
                     }
                     EXPECT_EQ(world.receive(received, Rank{victim}, Tag{99}).status, Status::peer_gone);
                     // Messages between the living go on.
                     const Rank other = Rank{1 - world.rank().value()};
                     detach(world.start_send(sent, other, Tag{1}));
                     EXPECT_EQ(world.receive(received, other, Tag{1}).status, Status::ok);
                     EXPECT_EQ(world.send(std::span<const int>(), other, Tag{token_tag}), Status::ok);
                     EXPECT_EQ(world.receive(std::span<int>(), other, Tag{token_tag}).status, Status::ok);
                   },
                   GetParam().settings),
               Killed);
}

TEST_P(Detached, MessagesOfManyThreadsAllArrive) {
  constexpr int threads = 3;
  const std::uint64_t seed = test::seed();
  run(2, [&](Communicator& world) {
    const Rank other = world.neighbour(1);
    std::vector<std::jthread> all;
    for (int number = 0; number < threads; ++number) {
      all.emplace_back([&, number] {
        Random random(seed + static_cast<std::uint64_t>(number));
        for (int round = 0; round < test::rounds(10); ++round) {
          const std::size_t bytes = test::sizes[test::between(random, 0, test::sizes.size() - 2)];
          const auto sent = pattern(bytes, static_cast<std::size_t>(2 * round + world.rank().value()));
          std::vector<std::byte> received(bytes);
          // One side of each message is detached. The next message says that this one has arrived.
          Request receive = world.start_receive(received, other, Tag{2 * number});
          Request send = world.start_send(sent, other, Tag{2 * number});
          const bool detaches_send = test::chance(random, 50);
          Requests::detach(detaches_send ? send : receive);
          ASSERT_EQ((detaches_send ? receive : send).wait().status, Status::ok);
          Request told = world.start_send(round, other, Tag{2 * number + 1});
          int seen = -1;
          ASSERT_EQ(world.receive(seen, other, Tag{2 * number + 1}).status, Status::ok);
          ASSERT_EQ(told.wait().status, Status::ok);
          ASSERT_TRUE(received == pattern(bytes, static_cast<std::size_t>(2 * round + other.value())));
        }
      });
    }
  });
}

TEST_P(Foreign, CompletesFromAnotherThreadAmongOthers) {
  const std::uint64_t seed = test::seed();
  run(2, [&](Communicator& world) {
    MessageRuntime& runtime = Communicators::context(world)->runtime();
    Random random(seed + static_cast<std::uint64_t>(world.rank().value()));
    const Rank other = world.neighbour(1);
    for (int round = 0; round < test::rounds(30); ++round) {
      Operation* operation = nullptr;
      std::array<int, 2> values{-1, -1};
      std::vector<Request> requests;
      requests.push_back(Requests::foreign(runtime, operation));
      for (std::size_t i = 0; i < 2; ++i) requests.push_back(world.start_receive(values[i], other, Tag{i}));
      ASSERT_FALSE(requests[0].test().has_value());
      ASSERT_FALSE(requests[0].cancel());
      const auto status = test::chance(random, 50) ? Status::ok : Status::cancelled;
      const std::size_t way = test::between(random, 0, 3);
      const bool waits_for_sleep = way <= 1 && test::chance(random, 30);  // until the waiting thread sleeps
      const auto sleeps = [&runtime] { return runtime.engine().counters().sleeps.load(); };
      const std::uint64_t before = sleeps();
      std::jthread completer([&, status, before, waits_for_sleep] {
        while (waits_for_sleep && sleeps() == before) std::this_thread::yield();
        Requests::complete_foreign(*operation, status);
      });
      if (way == 0) {
        ASSERT_EQ(requests[0].wait().status, status);
      } else if (way == 1) {
        // The other receives are posted, but nothing was sent to them yet.
        ASSERT_EQ(wait_any(requests), 0U);
        ASSERT_EQ(requests[0].wait().status, status);
      } else if (way == 2) {
        while (!requests[0].test().has_value()) std::this_thread::yield();
      }
      completer.join();
      ASSERT_EQ(world.barrier(), Status::ok);  // no rank sends while another may still wait for any
      for (int i = 0; i < 2; ++i) ASSERT_EQ(world.send(round, other, Tag{i}), Status::ok);
      ASSERT_EQ(wait_all(requests), status);
      ASSERT_EQ(requests[0].wait(), (Result<Envelope>{status, {}}));
      ASSERT_EQ(values, (std::array{round, round}));
    }
  });
}

TEST_P(Foreign, CompletesAfterItWasDetached) {
  run(1, [](Communicator& world) {
    MessageRuntime& runtime = Communicators::context(world)->runtime();
    Operation* operation = nullptr;
    Request request = Requests::foreign(runtime, operation);
    Requests::detach(request);
    ASSERT_TRUE(request.complete());
    Requests::complete_foreign(*operation, Status::ok);
  });
}

TEST_P(Several, AreTestedAllOrNothing) {
  run(2, [](Communicator& world) {
    if (world.rank() == 1) {
      for (const int tag : {0, 2, 1}) {
        ASSERT_EQ(world.receive(std::span<int>(), Rank{0}, Tag{token_tag}).status, Status::ok);
        ASSERT_EQ(world.send(tag + 10, Rank{0}, Tag{tag}), Status::ok);
        ASSERT_EQ(world.send(std::span<const int>(), Rank{0}, Tag{token_tag}), Status::ok);
      }
      return;
    }
    std::array<int, 3> values{};
    std::vector<Request> requests;
    for (std::size_t i = 0; i < values.size(); ++i) requests.push_back(world.start_receive(values[i], Rank{1}, Tag{i}));
    const auto next = [&world] {
      EXPECT_EQ(world.send(std::span<const int>(), Rank{1}, Tag{token_tag}), Status::ok);
      EXPECT_EQ(world.receive(std::span<int>(), Rank{1}, Tag{token_tag}).status, Status::ok);
    };
    std::array<std::size_t, 3> completed{};
    EXPECT_EQ(test_all(requests), std::nullopt);
    EXPECT_EQ(test_any(requests), std::nullopt);
    EXPECT_EQ(test_some(requests, completed), 0U);

    next();
    EXPECT_EQ(test_all(requests), std::nullopt);
    EXPECT_FALSE(requests[0].complete());  // although its message is here
    EXPECT_EQ(test_any(requests), 0U);
    EXPECT_TRUE(requests[0].complete());
    EXPECT_EQ(test_any(requests), std::nullopt);

    next();
    EXPECT_EQ(test_all(requests), std::nullopt);
    EXPECT_FALSE(requests[2].complete());
    ASSERT_EQ(test_some(requests, completed), 1U);
    EXPECT_EQ(completed[0], 2U);
    EXPECT_TRUE(requests[2].complete());

    next();
    EXPECT_EQ(test_all(requests), Status::ok);
    EXPECT_TRUE(requests[1].complete());
    EXPECT_EQ(values, (std::array{10, 11, 12}));
    EXPECT_EQ(test_all(requests), Status::ok);
    EXPECT_EQ(test_any(requests), requests.size());
    EXPECT_EQ(test_some(requests, completed), 0U);
  });
}

TEST_P(Several, MakeProgressInEveryWay) {
  const std::uint64_t seed = test::seed();
  run(2, [seed](Communicator& world) {
    Random random(seed);
    const Rank other = world.neighbour(1);
    for (int round = 0; round < test::rounds(6); ++round) {
      constexpr std::size_t count = 30;
      const std::size_t way = test::between(random, 0, 4);
      std::vector<std::vector<int>> buffers(2 * count);
      std::vector<Request> requests;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t ints = test::sizes[test::between(random, 0, test::sizes.size() - 2)] / sizeof(int);
        buffers[i].assign(ints, static_cast<int>(i) + 100 * world.rank().value());
        buffers[count + i].resize(ints);
        requests.push_back(world.start_send(buffers[i], other, Tag{i}));
        requests.push_back(world.start_receive(buffers[count + i], other, Tag{i}));
      }
      std::vector<std::size_t> completed(requests.size());
      std::size_t open = 0;
      std::vector<int> seen;  // 1: complete; short sends are complete at once
      for (const Request& request : requests) {
        seen.push_back(request.complete() ? 1 : 0);
        open += request.complete() ? 0 : 1;
      }
      const auto note = [&](std::size_t i) {
        --open;
        ASSERT_EQ(seen[i]++, 0);
        ASSERT_TRUE(requests[i].complete());
        ASSERT_EQ(requests[i].wait().status, Status::ok);
      };
      while (open != 0) {
        if (way == 0) {
          if (!test_all(requests)) {
            for (std::size_t i = 0; i < requests.size(); ++i) ASSERT_EQ(requests[i].complete(), seen[i] == 1);
            continue;
          }
          for (std::size_t i = 0; i < requests.size(); ++i) {
            if (seen[i] == 0) note(i);
          }
        } else if (way == 1) {
          if (const auto i = test_any(requests)) note(*i);
        } else if (way == 2) {
          note(wait_any(requests));
        } else {
          const std::size_t some = way == 3 ? test_some(requests, completed) : wait_some(requests, completed);
          ASSERT_TRUE(way != 4 || some != 0);
          for (std::size_t i = 0; i < some; ++i) note(completed[i]);
        }
      }
      EXPECT_EQ(wait_some(requests, completed), 0U);
      for (std::size_t i = 0; i < count; ++i) {
        const int expected = static_cast<int>(i) + 100 * other.value();
        ASSERT_TRUE(std::ranges::all_of(buffers[count + i], [=](int value) { return value == expected; }));
      }
    }
  });
}

TEST_P(Several, SendsCannotBeCancelledAndEndWhenTheyAreReceived) {
  run(2, [](Communicator& world) {
    for (const std::size_t bytes : test::sizes) {
      const auto sent = pattern(bytes, 1);
      if (world.rank() == 0) {
        std::array requests{world.start_send(sent, Rank{1}, Tag{1}),
                            world.start_send(sent, Rank{1}, Tag{1}, SendMode::when_posted)};
        for (Request& request : requests) {
          EXPECT_FALSE(request.cancel());
        }
        EXPECT_FALSE(requests[1].test().has_value());  // rank 1 receives it after the next message
        ASSERT_EQ(world.send(std::span<const int>(), Rank{1}, Tag{token_tag}), Status::ok);
        for (Request& request : requests) {
          EXPECT_EQ(request.wait().status, Status::ok);
        }
        EXPECT_FALSE(requests[1].cancel());
      } else {
        ASSERT_EQ(world.receive(std::span<int>(), Rank{0}, Tag{token_tag}).status, Status::ok);
        for (int i = 0; i < 2; ++i) {
          std::vector<std::byte> received(bytes);
          ASSERT_EQ(world.receive(received, Rank{0}, Tag{1}).status, Status::ok);
          ASSERT_TRUE(received == sent);
        }
      }
    }
  });
}

// Rank 1 waits for 64 messages that rank 0 sends only after others, with blocking sends. The receives of the others are
// posted, so these sends must end although rank 1 does not wait for them yet. Outstanding sends use up the tickets that
// have a TransferMemory.
TEST_P(Several, AreReceivedWhileTheirThreadWaitsForOthers) {
  constexpr int first_count = 64;
  constexpr int outstanding_count = 200;
  const std::uint64_t seed = test::seed();
  run(2, [seed](Communicator& world) {
    Random random(seed);
    std::vector<std::vector<std::byte>> sent;
    for (std::size_t i = 0; i < 150; ++i)
      sent.push_back(pattern(test::sizes[test::between(random, 0, test::sizes.size() - 1)], i));
    const std::vector<std::byte> outstanding(20'000);
    if (world.rank() == 0) {
      std::vector<Request> requests;
      for (int i = 0; i < outstanding_count; ++i)
        requests.push_back(world.start_send(outstanding, Rank{1}, Tag{1000 + i}));
      for (std::size_t i = sent.size(); i-- > 0;)
        ASSERT_EQ(world.send(sent[i], Rank{1}, Tag{100 + static_cast<int>(i)}), Status::ok);
      for (int i = 0; i < first_count; ++i) ASSERT_EQ(world.send(i, Rank{1}, Tag{i}), Status::ok);
      ASSERT_EQ(wait_all(requests), Status::ok);
    } else {
      std::array<int, first_count> first{};
      std::vector<std::vector<std::byte>> received;
      for (const auto& each : sent) received.emplace_back(each.size());
      std::vector<Request> requests;
      for (std::size_t i = 0; i < first.size(); ++i)
        requests.push_back(world.start_receive(first[i], Rank{0}, Tag{static_cast<int>(i)}));
      for (std::size_t i = 0; i < received.size(); ++i)
        requests.push_back(world.start_receive(received[i], Rank{0}, Tag{100 + static_cast<int>(i)}));
      ASSERT_EQ(wait_all(requests), Status::ok);
      for (std::size_t i = 0; i < first.size(); ++i) ASSERT_EQ(first[i], static_cast<int>(i));
      for (std::size_t i = 0; i < received.size(); ++i) ASSERT_TRUE(received[i] == sent[i]);
      std::vector<std::byte> buffer(outstanding.size());
      for (int i = outstanding_count; i-- > 0;)
        ASSERT_EQ(world.receive(buffer, Rank{0}, Tag{1000 + i}).status, Status::ok);
    }
  });
}

}  // namespace
}  // namespace tonari
