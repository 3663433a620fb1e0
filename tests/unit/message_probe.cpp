#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include <array>
#include <atomic>
#include <thread>

namespace tonari {
namespace {

using test::pattern;

class Probe : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Probe, testing::ValuesIn(test::variants_and_network()), test::name_of);

TEST_P(Probe, ReturnsTheLengthAndLeavesTheMessage) {
  run(2, [](Communicator& world) {
    for (const std::size_t bytes : {0, 10, 1000, 50000}) {
      const auto sent = test::pattern(bytes, bytes);
      if (world.rank() == 0) {
        ASSERT_EQ(world.send(sent, Rank{1}, Tag{4}), Status::ok);
        ASSERT_EQ(world.receive(std::span<int>(), Rank{1}).status, Status::ok);
        continue;
      }
      const Result<Envelope> found = world.probe(Rank::any, Tag::any);
      ASSERT_EQ(found.status, Status::ok);
      ASSERT_EQ(found.value.source, 0);
      ASSERT_EQ(found.value.tag, 4);
      const auto again = world.probe_now(Rank{0}, Tag{4});
      ASSERT_TRUE(again.has_value());
      ASSERT_FALSE(world.probe_now(Rank{0}, Tag{5}).has_value());

      std::vector<std::byte> received(again->bytes);

      ASSERT_EQ(world.receive(received, Rank{again->source}, Tag{again->tag}).status, Status::ok);
      ASSERT_TRUE(received == sent);
      ASSERT_FALSE(world.probe_now(Rank::any, Tag::any).has_value());
      ASSERT_EQ(world.send(std::span<const int>(), Rank{0}), Status::ok);
    }
  });
}

TEST_P(Probe, AMatchedOneTakesTheMessageOutOfTheQueue) {
  run(2, [](Communicator& world) {
    int tag = 0;
    for (const std::size_t bytes : {0, 10, 1000, 20000, 300000}) {
      ++tag;
      const auto first = pattern(bytes, 1);
      const auto second = pattern(bytes, 2);
      if (world.rank() == 0) {
        std::array sends{world.start_send(first, Rank{1}, Tag{tag}), world.start_send(second, Rank{1}, Tag{tag})};
        ASSERT_EQ(wait_all(sends), Status::ok);
        continue;
      }
      Message message = world.matched_probe(Rank::any, Tag{tag});
      ASSERT_EQ(message.status(), Status::ok);
      ASSERT_EQ(message.envelope().source, 0);
      ASSERT_EQ(message.envelope().tag, tag);
      ASSERT_EQ(message.envelope().bytes, bytes);
      std::vector<std::byte> later(bytes);
      ASSERT_EQ(world.receive(later, Rank{0}, Tag{tag}).status,
                Status::ok);  // overtakes the message that the probe took
      std::vector<std::byte> taken(bytes);
      const Result<Envelope> result = message.receive(taken);
      ASSERT_EQ(result.status, Status::ok);
      ASSERT_EQ(result.value.bytes, bytes);
      ASSERT_TRUE(taken == first);
      ASSERT_TRUE(later == second);
      ASSERT_EQ(message.receive(taken).status, Status::invalid);  // a message can be received only once
      ASSERT_FALSE(world.matched_probe_now(Rank::any, Tag{tag}).has_value());
    }
  });
}

TEST_P(Probe, AMatchedOneMayDiscardOrTruncateTheMessage) {
  run(2, [](Communicator& world) {
    for (const std::size_t bytes : {8, 1000, 300000}) {
      const auto sent = pattern(bytes, bytes);
      if (world.rank() == 0) {
        for (const int tag : {1, 2}) {
          ASSERT_EQ(world.send(sent, Rank{1}, Tag{tag}), Status::ok);
        }
        continue;
      }
      {
        Message thrown_away = world.matched_probe(Rank{0}, Tag{1});
        ASSERT_EQ(thrown_away.envelope().bytes, bytes);
      }
      std::optional<Message> message;
      while (!message) message = world.matched_probe_now(Rank::any, Tag::any);
      std::vector<std::byte> part(bytes / 2);
      Request request = message->start_receive(part);
      ASSERT_EQ(request.wait().status, Status::truncated);
      ASSERT_TRUE(std::equal(part.begin(), part.end(), sent.begin()));
    }
  });
}

TEST_P(Probe, ByManyThreadsGivesEachItsOwnMessage) {
  constexpr int threads = 4;
  const int messages = test::rounds(100);
  run(2, [messages](Communicator& world) {
    if (world.rank() == 0) {
      for (int i = 0; i < threads * messages; ++i) {
        ASSERT_EQ(world.send(pattern(static_cast<std::size_t>(i) * 7, static_cast<std::size_t>(i)), Rank{1}, Tag{i}),
                  Status::ok);
      }
      return;
    }
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&] {
        for (int i = 0; i < messages; ++i) {
          Message message = world.matched_probe(Rank::any, Tag::any);
          std::vector<std::byte> received(message.envelope().bytes);
          const auto tag = static_cast<std::size_t>(message.envelope().tag.value());
          EXPECT_EQ(message.receive(received).status, Status::ok);
          EXPECT_TRUE(received == pattern(tag * 7, tag));
        }
      });
    }
  });
}

TEST(ProbeArguments, WrongOnesReturnInvalid) {
  test::as_ranks(1, [](Communicator& world) {
    int value = 0;
    Message message = world.matched_probe(Rank{1}, Tag{0});
    EXPECT_EQ(message.status(), Status::invalid);
    EXPECT_EQ(message.receive(value).status, Status::invalid);
    EXPECT_FALSE(world.matched_probe_now(Rank{0}, Tag{-2}).has_value());
  });
}

class Cancel : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, Cancel, testing::ValuesIn(test::variants_and_network()), test::name_of);

TEST_P(Cancel, EndsAnOperationWithoutAMatch) {
  run(2, [](Communicator& world) {
    int value = 0;
    const int peer = 1 - world.rank().value();
    Request never = world.start_receive(value, Rank{peer}, Tag{1});
    Request from_any = world.start_receive(value, Rank::any, Tag::any);
    EXPECT_TRUE(from_any.cancel());
    EXPECT_TRUE(never.cancel());
    EXPECT_FALSE(never.cancel());
    EXPECT_EQ(never.wait().status, Status::cancelled);
    ASSERT_EQ(world.barrier(), Status::ok);

    const int sent = world.rank().value() + 7;
    Request send = world.start_send(sent, Rank{peer}, Tag{1});
    ASSERT_EQ(world.receive(value, Rank{peer}, Tag{1}).status,
              Status::ok);  // the cancelled receive did not take the message
    ASSERT_EQ(send.wait().status, Status::ok);
    EXPECT_EQ(value, peer + 7);
  });
}

TEST_P(Cancel, LeavesAMatchedOperationAlone) {
  run(2, [](Communicator& world) {
    std::vector<int> values(50000, world.rank().value());
    const int peer = 1 - world.rank().value();
    std::vector<int> received(values.size());
    Request receive = world.start_receive(received, Rank{peer}, Tag{1});
    Request send = world.start_send(values, Rank{peer}, Tag{1}, SendMode::when_posted);
    EXPECT_FALSE(send.cancel());
    EXPECT_EQ(send.wait().status, Status::ok);  // so the peer's receive has matched it
    ASSERT_EQ(world.barrier(), Status::ok);     // and this rank's receive has matched the peer's message
    EXPECT_FALSE(receive.cancel());
    EXPECT_EQ(receive.wait().status, Status::ok);
    EXPECT_EQ(received, std::vector<int>(values.size(), peer));
  });
}

TEST(PersistentRequests, AreStartedAgainAndAgain) {
  test::as_ranks(2, [](Communicator& world) {
    int out = 0;
    int in = 0;
    const int peer = 1 - world.rank().value();
    PersistentRequest send = world.prepare_send(out, Rank{peer}, Tag{3});
    PersistentRequest receive = world.prepare_receive(in, Rank{peer}, Tag{3});
    EXPECT_TRUE(send.complete());
    for (int i = 0; i < 100; ++i) {
      out = i;
      ASSERT_TRUE(receive.start());
      ASSERT_TRUE(send.start());
      ASSERT_EQ(receive.wait().status, Status::ok);
      ASSERT_EQ(send.wait().status, Status::ok);
      ASSERT_EQ(in, i);
    }
    ASSERT_TRUE(receive.start());
    EXPECT_FALSE(receive.start());  // the request is still active
    EXPECT_TRUE(receive.cancel());
    ASSERT_TRUE(receive.start());
    EXPECT_TRUE(receive.cancel());
  });
}

}  // namespace
}  // namespace tonari
