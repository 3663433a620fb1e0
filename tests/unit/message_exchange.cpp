#include "../support/exchange.hpp"
#include "../support/ranks.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <list>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace tonari {
namespace {

using test::as_ranks;
using test::pattern;
using test::ready_tag;
using test::sizes;

static_assert(Transferable<int> && Transferable<std::vector<double>&> && Transferable<std::span<const int>>);
static_assert(Transferable<std::array<int, 3>> && Transferable<int (&)[3]> && Transferable<std::optional<int>>);
static_assert(!Transferable<std::vector<int*>> && !Transferable<int*&> && !Transferable<const char*>);
static_assert(!Transferable<std::vector<int>::iterator> && !Transferable<std::reference_wrapper<int>>);
static_assert(!Transferable<std::ranges::ref_view<std::list<int>>> && !Transferable<std::vector<std::string_view>>);

class Message : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Message, testing::ValuesIn(test::variants_and_network()), test::name_of);

TEST_P(Message, ArrivesWholeInEverySizeAndManner) {
  run(2, [](Communicator& world) { test::exchange_all(world, 0, 1); });
}

TEST_P(Message, ReachesItsOwnSender) {
  run(1, [](Communicator& world) {
    for (const std::size_t bytes : sizes) {
      const auto sent = pattern(bytes, bytes);
      std::vector<std::byte> received(bytes);

      Request receive = world.start_receive(received, Rank{0}, Tag{3});
      ASSERT_EQ(world.send(sent, Rank{0}, Tag{3}), Status::ok);
      ASSERT_EQ(receive.wait().status, Status::ok);
      ASSERT_TRUE(received == sent);

      std::ranges::fill(received, std::byte{});
      Request send = world.start_send(sent, Rank{0}, Tag{4});
      ASSERT_EQ(world.receive(received, Rank{0}, Tag{4}).status, Status::ok);
      ASSERT_EQ(send.wait().status, Status::ok);
      ASSERT_TRUE(received == sent);
    }
  });
}

TEST_P(Message, IsTruncatedIfTooLongAndReturnsThatStatus) {
  run(2, [](Communicator& world) {
    for (const bool posted : {true, false}) {
      for (const std::size_t bytes : {1, 48, 49, 256, 8191, 8192, 16385, 262145}) {
        for (const std::size_t room : {std::size_t{0}, bytes / 2, bytes - 1}) {
          const auto sent = pattern(bytes, bytes);
          if (world.rank() == 0) {
            ASSERT_EQ(world.receive(std::span<int>(), Rank{1}, Tag{ready_tag}).status, Status::ok);
            Request request = world.start_send(sent, Rank{1}, Tag{5});
            ASSERT_EQ(world.send(std::span<const int>(), Rank{1}, Tag{ready_tag}), Status::ok);
            ASSERT_EQ(request.wait().status, Status::ok);
          } else {
            std::vector<std::byte> received(room + 1,
                                            std::byte{0x55});  // one byte more, to see if a write goes beyond the end
            const auto buffer = std::span(received).first(room);
            Request request;
            if (posted) request = world.start_receive(buffer, Rank{0}, Tag{5});
            ASSERT_EQ(world.send(std::span<const int>(), Rank{0}, Tag{ready_tag}), Status::ok);
            ASSERT_EQ(world.receive(std::span<int>(), Rank{0}, Tag{ready_tag}).status, Status::ok);
            if (!posted) request = world.start_receive(buffer, Rank{0}, Tag{5});

            const Result<Envelope> result = request.wait();

            ASSERT_EQ(result.status, Status::truncated) << bytes << " bytes into " << room;
            ASSERT_EQ(result.value.bytes, bytes);
            ASSERT_TRUE(std::equal(buffer.begin(), buffer.end(), sent.begin()));
            ASSERT_EQ(received[room], std::byte{0x55});
          }
        }
      }
    }
  });
}

TEST(MessageArguments, WrongOnesReturnInvalidAndStartNothing) {
  as_ranks(2, [](Communicator& world) {
    int value = 1;
    const auto invalid = [](Request request) { return request.complete() && request.wait().status == Status::invalid; };
    for (const int peer : {-1, -2, 2, 1000000}) {
      EXPECT_EQ(world.send(value, Rank{peer}), Status::invalid);
      EXPECT_TRUE(invalid(world.start_send(value, Rank{peer})));
      if (peer != Rank::any) {
        EXPECT_EQ(world.receive(value, Rank{peer}).status, Status::invalid);
        EXPECT_TRUE(invalid(world.start_receive(value, Rank{peer})));
        EXPECT_EQ(world.probe(Rank{peer}, Tag::any).status, Status::invalid);
        EXPECT_FALSE(world.probe_now(Rank{peer}, Tag::any).has_value());
      }
      EXPECT_EQ(world.broadcast(value, Rank{peer}), Status::invalid);
      EXPECT_TRUE(invalid(world.start_broadcast(value, Rank{peer})));
      std::array<int, 2> all{};
      EXPECT_EQ(world.gather(value, all, Rank{peer}), Status::invalid);
      EXPECT_TRUE(invalid(world.start_gather(value, all, Rank{peer})));
    }
    EXPECT_EQ(world.send(value, Rank{0}, Tag{-1}), Status::invalid);
    EXPECT_EQ(world.receive(value, Rank{0}, Tag{-2}).status, Status::invalid);
    const std::span<const std::byte> nowhere(static_cast<const std::byte*>(nullptr), 8);
    EXPECT_EQ(world.send_bytes(nowhere, Rank{0}, Tag{0}), Status::invalid);
    EXPECT_EQ(world.receive_bytes({static_cast<std::byte*>(nullptr), 8}, Rank{0}, Tag{0}).status, Status::invalid);

    ASSERT_EQ(world.barrier(), Status::ok);
    EXPECT_FALSE(world.probe_now(Rank::any, Tag::any).has_value());
  });
}

TEST(MessageArguments, GatherIntoATooSmallBufferReturnsInvalid) {
  as_ranks(1, [](Communicator& world) {
    std::array<int, 4> mine{};
    std::array<int, 3> all{};
    EXPECT_EQ(world.gather(mine, all, Rank{0}), Status::invalid);
  });
}

TEST_P(Message, OrderOfOneSendersMessagesIsKeptForAllSizes) {
  const int messages = test::rounds(400);
  run(2, [messages](Communicator& world) {
    test::Random random(test::seed());  // the same on both ranks
    std::vector<std::byte> received(40000);
    for (int i = 0; i < messages; ++i) {
      const std::size_t bytes =
          test::between(random, 0, 3) == 0 ? test::between(random, 0, 40000) : test::between(random, 0, 300);
      const int tag = static_cast<int>(test::between(random, 0, 2));
      const bool by_any = test::chance(random, 50);
      if (world.rank() == 0) {
        ASSERT_EQ(world.send(pattern(bytes, static_cast<std::size_t>(i)), Rank{1}, Tag{tag}), Status::ok);
      } else {
        const Result<Envelope> result = by_any ? world.receive(received) : world.receive(received, Rank{0}, Tag{tag});
        ASSERT_EQ(result.status, Status::ok);
        ASSERT_EQ(result.value.tag, tag);
        ASSERT_EQ(result.value.bytes, bytes);
        const auto expected = pattern(bytes, static_cast<std::size_t>(i));
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), received.begin())) << "message " << i;
      }
    }
  });
}

TEST_P(Message, MoreStartedOnesThanTicketsArriveInOrder) {
  constexpr std::size_t messages = 1500;  // more than the tickets, the blocks of bulk memory or the slots of a ring
  for (const std::size_t bytes : {8, 600, 5000, 20000}) {
    run(2, [bytes](Communicator& world) {
      const auto number_at = [bytes](std::vector<std::byte>& buffer, std::size_t i) -> std::byte* {
        return &buffer[i * bytes];
      };
      std::vector<std::byte> buffer(messages * bytes);
      std::vector<Request> requests;
      for (std::size_t i = 0; i < messages; ++i) {
        const auto part = std::span(buffer).subspan(i * bytes, bytes);
        if (world.rank() == 0) {
          std::memcpy(number_at(buffer, i), &i, sizeof i);
          requests.push_back(world.start_send(part, Rank{1}, Tag{9}));
        } else {
          requests.push_back(world.start_receive(part, Rank{0}, Tag{9}));
        }
      }

      ASSERT_EQ(wait_all(requests), Status::ok);

      for (std::size_t i = 0; world.rank() == 1 && i < messages; ++i) {
        ASSERT_EQ(std::memcmp(number_at(buffer, i), &i, sizeof i), 0);
      }
    });
  }
}

TEST_P(Message, SentByBothRanksAtOnceNeedsNoReceiveUpToTheLimit) {
  // The messages are far below TONARI_UNEXPECTED_BYTES, and far more than ring and bulk memory hold. Blocking standard
  // sends must not wait for their receives.
  constexpr int messages = 1000;
  for (const std::size_t bytes : {8, 100, 1000, 4000}) {
    if (GetParam().name == "SmallChunks" || GetParam().name == "PiecesOfAll")
      continue;  // these settings announce the messages, so the sends wait
    run(2, [bytes](Communicator& world) {
      const int other = 1 - world.rank().value();
      std::vector<std::byte> received(bytes);
      for (int i = 0; i < messages; ++i) {
        ASSERT_EQ(world.send(pattern(bytes, static_cast<std::size_t>(i)), Rank{other}), Status::ok);
      }
      for (int i = 0; i < messages; ++i) {
        ASSERT_EQ(world.receive(received, Rank{other}).status, Status::ok);
        ASSERT_TRUE(received == pattern(bytes, static_cast<std::size_t>(i)));
      }
    });
  }
}

TEST_P(Message, SentByBothRanksArrivesInReceivesStartedBefore) {
  for (const std::size_t bytes : {100, 5000, 100000, 5000000}) {
    run(2, [bytes](Communicator& world) {
      const int other = 1 - world.rank().value();
      std::vector<std::byte> received(bytes);
      Request receive = world.start_receive(received, Rank{other});

      ASSERT_EQ(world.send(pattern(bytes, 1), Rank{other}), Status::ok);

      ASSERT_EQ(receive.wait().status, Status::ok);
      ASSERT_TRUE(received == pattern(bytes, 1));
    });
  }
}

TEST_P(Message, IsTakenByAStartedReceiveWhileItsRankWaitsForAnother) {
  // The sender proceeds although the receiver's only thread waits for another message, and whether or not that thread
  // has waited before.
  for (const std::size_t bytes : {5000, 20000, 3000000}) {
    run(2, [bytes](Communicator& world) {
      const auto sent = pattern(bytes, 1);
      if (world.rank() == 0) {
        ASSERT_EQ(world.send(1, Rank{1}, Tag{1}), Status::ok);
        ASSERT_EQ(world.receive(std::span<int>(), Rank{1}, Tag{ready_tag}).status, Status::ok);
        ASSERT_EQ(world.send(sent, Rank{1}, Tag{2}), Status::ok);
        ASSERT_EQ(world.send(3, Rank{1}, Tag{3}), Status::ok);
        return;
      }
      std::vector<std::byte> received(bytes);
      int first = 0;
      int last = 0;
      std::array<Request, 2> requests{world.start_receive(received, Rank{0}, Tag{2}),
                                      world.start_receive(first, Rank{0}, Tag{1})};
      ASSERT_EQ(wait_any(requests), 1U);
      ASSERT_EQ(world.send(std::span<const int>(), Rank{0}, Tag{ready_tag}), Status::ok);

      ASSERT_EQ(world.receive(last, Rank{0}, Tag{3}).status, Status::ok);

      ASSERT_EQ(wait_all(requests), Status::ok);
      ASSERT_TRUE(received == sent);
      ASSERT_EQ(first, 1);
      ASSERT_EQ(last, 3);
    });
  }
}

TEST_P(Message, IsSentByAStartedSendWhileItsRankWaitsForAnother) {
  for (const std::size_t bytes : {5000, 20000, 3000000}) {
    run(2, [bytes](Communicator& world) {
      const auto sent = pattern(bytes, 1);
      int answer = 0;
      if (world.rank() == 0) {
        Request request = world.start_send(sent, Rank{1}, Tag{1}, SendMode::when_posted);
        ASSERT_EQ(world.receive(answer, Rank{1}, Tag{2}).status, Status::ok);
        ASSERT_EQ(request.wait().status, Status::ok);
      } else {
        std::vector<std::byte> received(bytes);
        ASSERT_EQ(world.receive(received, Rank{0}, Tag{1}).status, Status::ok);
        ASSERT_TRUE(received == sent);
        ASSERT_EQ(world.send(answer, Rank{0}, Tag{2}), Status::ok);
      }
    });
  }
}

TEST_P(Message, IsMatchedByAStartedReceiveWithoutRoom) {
  run(2, [](Communicator& world) {
    const int other = 1 - world.rank().value();
    for (const std::size_t bytes : {0, 100, 100000}) {
      Request request = world.start_receive_bytes({}, Rank{other}, Tag{5});
      ASSERT_EQ(world.send(pattern(bytes, 1), Rank{other}, Tag{5}, SendMode::when_posted), Status::ok);
      const Result<Envelope> result = request.wait();
      ASSERT_EQ(result.status, bytes == 0 ? Status::ok : Status::truncated);
      ASSERT_EQ(result.value.bytes, bytes);
    }
  });
}

}  // namespace
}  // namespace tonari
