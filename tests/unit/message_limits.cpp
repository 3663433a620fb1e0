#include "../support/random.hpp"
#include "../support/ranks.hpp"

#include "fabric/head.hpp"
#include "fabric/transfer.hpp"

#include <array>
#include <stdexcept>

namespace tonari {
namespace {

using test::pattern;

// Like test::as_ranks, for tests that also use the job.
void as_jobs(int ranks, const std::function<void(Job&, Communicator&)>& body, const test::Settings& settings = {}) {
  run_as_threads(
      ranks,
      [&body](Job& job) {
        Communicator world(job);
        body(job, world);
      },
      settings);
}

TEST(UnexpectedLimit, KeepsTheReceiversMemoryBoundedAndDeliversAllInOrder) {
  constexpr std::uint64_t limit = 256 * 1024;
  constexpr int messages = 4000;
  const auto bytes_of = [](int i) { return static_cast<std::size_t>(i % 7 == 0 ? 3000 : i % 7 * 20); };
  as_jobs(3,
          [&](Job& job, Communicator& world) {
            if (world.rank() != 0) {
              std::vector<std::vector<std::byte>> sent;
              std::vector<Request> requests;
              for (int i = 0; i < messages; ++i) {
                sent.push_back(pattern(bytes_of(i), static_cast<std::size_t>(i)));
                requests.push_back(world.start_send(sent.back(), Rank{0}, Tag{1}));
              }
              ASSERT_EQ(world.send(messages, Rank{0}, Tag{2}, SendMode::standard), Status::ok);
              ASSERT_EQ(wait_all(requests), Status::ok);
              return;
            }
            // Polls until the limit is reached, then as often again, so that every message that may come has come.
            while (job.statistics().unexpected_bytes_now < limit)
              ASSERT_FALSE(world.probe_now(Rank{0}, Tag{0}).has_value());
            for (int i = 0; i < 100000; ++i) ASSERT_FALSE(world.probe_now(Rank{0}, Tag{0}).has_value());
            // Beyond the limit there are only messages that were under way before their senders saw it, and
            // announcements of one head each.
            const std::uint64_t on_its_way = 2 * messages * fabric::head_bytes + 2 * 64 * 3000;
            EXPECT_LE(job.statistics().unexpected_bytes_max, limit + on_its_way);
            std::vector<std::byte> received(3000);
            for (int i = 0; i < messages; ++i) {
              for (const int source : {1, 2}) {
                const Result<Envelope> result = world.receive(received, Rank{source}, Tag{1});
                ASSERT_EQ(result.status, Status::ok);
                ASSERT_EQ(result.value.bytes, bytes_of(i));
                ASSERT_TRUE(std::equal(received.begin(), received.begin() + static_cast<std::ptrdiff_t>(bytes_of(i)),
                                       pattern(bytes_of(i), static_cast<std::size_t>(i)).begin()))
                    << "message " << i << " of " << source;
              }
            }
            int last = 0;
            for (const int source : {1, 2}) ASSERT_EQ(world.receive(last, Rank{source}, Tag{2}).status, Status::ok);
            EXPECT_EQ(job.statistics().unexpected_now, 0U);
            EXPECT_EQ(job.statistics().unexpected_bytes_now, 0U);
          },
          {"TONARI_UNEXPECTED_BYTES=256K"});
}

class ManyAnnounced : public test::OnEveryVariant {};
INSTANTIATE_TEST_SUITE_P(On, ManyAnnounced, testing::ValuesIn(test::variants_and_network()), test::name_of);

constexpr int more_than_tickets = 3 * static_cast<int>(fabric::tickets_max);

TEST_P(ManyAnnounced, AreReceivedInAnyOrder) {
  for (const std::size_t bytes : {100, 20000}) {
    run(2, [bytes](Communicator& world) {
      std::vector<std::vector<std::byte>> buffers(more_than_tickets);
      std::vector<Request> sends;
      for (int tag = 0; tag < more_than_tickets; ++tag) {
        auto& buffer = buffers[static_cast<std::size_t>(tag)];
        buffer = pattern(bytes, static_cast<std::size_t>(tag));
        if (world.rank() == 0) sends.push_back(world.start_send(buffer, Rank{1}, Tag{tag}, SendMode::when_posted));
      }
      std::vector<std::byte> received(bytes);
      for (int tag = more_than_tickets - 1; world.rank() == 1 && tag >= 0; --tag) {
        ASSERT_EQ(world.receive(received, Rank{0}, Tag{tag}).status, Status::ok);
        ASSERT_TRUE(received == buffers[static_cast<std::size_t>(tag)]);
      }
      ASSERT_EQ(wait_all(sends), Status::ok);
    });
  }
}

TEST_P(ManyAnnounced, DelayNoOtherMessage) {
  run(3, [](Communicator& world) {
    std::vector<int> values(20000, 7);
    int go = 0;
    if (world.rank() == 0) {
      std::vector<Request> sends;
      for (int i = 0; i < more_than_tickets; ++i) sends.push_back(world.start_send(values, Rank{1}));
      ASSERT_EQ(world.send(values, Rank{2}), Status::ok);
      ASSERT_EQ(wait_all(sends), Status::ok);
    } else if (world.rank() == 1) {
      ASSERT_EQ(world.receive(go, Rank{2}).status, Status::ok);
      for (int i = 0; i < more_than_tickets; ++i) ASSERT_EQ(world.receive(values, Rank{0}).status, Status::ok);
    } else {
      ASSERT_EQ(world.receive(values, Rank{0}).status, Status::ok);
      Request send = world.start_send(go, Rank{1});
      ASSERT_EQ(send.wait().status, Status::ok);
    }
    ASSERT_EQ(world.broadcast(values, Rank{0}), Status::ok);
  });
}

TEST_P(ManyAnnounced, EndWhenTheReceiverDiesOrLeaves) {
  for (const bool dies : {true, false}) {
    const auto body = [dies](Communicator& world) {
      const std::vector<int> values(5000);
      std::vector<Request> sends;
      for (int i = 0; world.rank() == 0 && i < more_than_tickets; ++i) {
        sends.push_back(world.start_send(values, Rank{1}, Tag{i}));
      }
      int go = 0;
      if (world.rank() == 1) {
        ASSERT_EQ(world.probe(Rank{0}, Tag{more_than_tickets - 1}).status, Status::ok);  // all are announced
        if (dies) throw std::runtime_error("dies");
        return;
      }
      for (Request& send : sends) ASSERT_EQ(send.wait().status, Status::peer_gone);
      ASSERT_EQ(world.receive(go, Rank{1}).status, Status::peer_gone);
    };
    if (dies) {
      EXPECT_THROW(run(2, body), std::runtime_error);
    } else {
      run(2, body);
    }
  }
}

TEST(UnexpectedLimit, ZeroLetsOneMessageWaitAndDelaysLaterSendsUntilTheirReceives) {
  as_jobs(2,
          [](Job& job, Communicator& world) {
            if (world.rank() == 0) {
              ASSERT_EQ(world.send(1, Rank{1}, Tag{1}), Status::ok);  // the one message that may come unexpected
              ASSERT_EQ(world.receive(std::span<int>(), Rank{1}).status, Status::ok);
              const int value = 2;
              Request request = world.start_send(value, Rank{1}, Tag{2});
              for (int i = 0; i < 1000; ++i) ASSERT_FALSE(request.test().has_value());
              ASSERT_EQ(world.send(std::span<const int>(), Rank{1}, Tag{3}, SendMode::standard), Status::ok);
              ASSERT_EQ(request.wait().status, Status::ok);
            } else {
              ASSERT_EQ(world.probe(Rank{0}, Tag{1}).status, Status::ok);
              ASSERT_EQ(world.send(std::span<const int>(), Rank{0}), Status::ok);
              int value = 0;
              ASSERT_EQ(world.receive(std::span<int>(), Rank{0}, Tag{3}).status, Status::ok);
              ASSERT_EQ(world.receive(value, Rank{0}, Tag{2}).status, Status::ok);
              ASSERT_EQ(value, 2);
              ASSERT_EQ(world.receive(value, Rank{0}, Tag{1}).status, Status::ok);
              ASSERT_EQ(job.statistics().unexpected_bytes_now, 0U);
            }
          },
          {"TONARI_UNEXPECTED_BYTES=0"});
}

TEST(Flood, FromOneSenderDoesNotBlockAnothersMessages) {
  // Rank 1 sends without pause until it is told to stop. The ping-pong of ranks 2 and 0 must end nevertheless.
  as_jobs(3,
          [](Job&, Communicator& world) {
            constexpr int turns = 200;
            if (world.rank() == 1) {
              Request stop = world.start_receive(std::span<int>(), Rank{0}, Tag{9});
              int sent = 0;
              while (!stop.test().has_value()) {
                ASSERT_EQ(world.send(pattern(700, 1), Rank{0}, Tag{1}), Status::ok);
                ++sent;
              }
              ASSERT_EQ(world.send(sent, Rank{0}, Tag{2}), Status::ok);
            } else if (world.rank() == 2) {
              for (int i = 0; i < turns; ++i) {
                int value = -1;
                ASSERT_EQ(world.send(i, Rank{0}, Tag{3}), Status::ok);
                ASSERT_EQ(world.receive(value, Rank{0}, Tag{3}).status, Status::ok);
                ASSERT_EQ(value, i);
              }
            } else {
              for (int i = 0; i < turns; ++i) {
                int value = -1;
                ASSERT_EQ(world.receive(value, Rank{2}, Tag{3}).status, Status::ok);
                ASSERT_EQ(world.send(value, Rank{2}, Tag{3}), Status::ok);
              }
              ASSERT_EQ(world.send(std::span<const int>(), Rank{1}, Tag{9}), Status::ok);
              std::vector<std::byte> received(700);
              int sent = -1;
              int taken = 0;
              for (; sent != taken; ++taken) {
                const Result<Envelope> found = world.probe(Rank{1}, Tag::any);
                ASSERT_EQ(found.status, Status::ok);
                if (found.value.tag == 2) {
                  ASSERT_EQ(world.receive(sent, Rank{1}, Tag{2}).status, Status::ok);
                  break;
                }
                ASSERT_EQ(world.receive(received, Rank{1}, Tag{1}).status, Status::ok);
              }
              ASSERT_EQ(taken, sent);
            }
          },
          {"TONARI_UNEXPECTED_BYTES=1M"});
}

TEST(StatisticsOfARank, CountTheMessagesOfAllItsThreads) {
  as_jobs(2, [](Job& job, Communicator& world) {
    constexpr std::uint64_t each = 100;
    const int value = 5;
    int taken = 0;
    if (world.rank() == 1) {
      for (std::uint64_t i = 0; i < 3 * each; ++i)
        ASSERT_EQ(world.receive(taken, Rank{0}, Tag::any).status, Status::ok);
      return;
    }
    const auto send = [&](int tag) {
      for (std::uint64_t i = 0; i < each; ++i) EXPECT_EQ(world.send(value, Rank{1}, Tag{tag}), Status::ok);
    };
    std::array threads{std::thread(send, 1), std::thread(send, 2)};
    send(0);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(job.statistics().messages_sent, 3 * each);
    EXPECT_EQ(job.statistics().bytes_sent, 3 * each * sizeof value);
  });
}

TEST(StatisticsOfARank, CountItsMessagesAndOperations) {
  as_jobs(2, [](Job& job, Communicator& world) {
    const auto long_one = pattern(1 << 20, 1);
    std::vector<std::byte> received(long_one.size());
    const int value = 5;
    int taken = 0;
    if (world.rank() == 0) {
      ASSERT_EQ(world.receive(std::span<int>(), Rank{1}, Tag{1}).status, Status::ok);
      ASSERT_EQ(world.send(value, Rank{1}, Tag{1}), Status::ok);
      ASSERT_EQ(world.send(long_one, Rank{1}, Tag{2}), Status::ok);
      EXPECT_EQ(job.statistics().messages_sent, 2U);
      EXPECT_EQ(job.statistics().bytes_sent, sizeof value + long_one.size());
      EXPECT_EQ(job.statistics().messages_received, 1U);
    } else {
      std::array requests{world.start_receive(taken, Rank{0}, Tag{1}), world.start_receive(received, Rank{0}, Tag{2})};
      EXPECT_EQ(job.statistics().posted_now, 2U);
      ASSERT_EQ(world.send(std::span<const int>(), Rank{0}, Tag{1}), Status::ok);
      ASSERT_EQ(wait_all(requests), Status::ok);
      const Statistics after = job.statistics();
      EXPECT_EQ(after.messages_received, 2U);
      EXPECT_EQ(after.bytes_direct, long_one.size());
      EXPECT_EQ(after.bytes_buffered, sizeof value);
      EXPECT_EQ(after.posted_now, 0U);
      EXPECT_EQ(after.posted_max, 2U);
      EXPECT_EQ(after.unexpected_max, 0U);
    }
  });
}

}  // namespace
}  // namespace tonari
