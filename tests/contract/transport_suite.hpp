#pragma once

#include "../support/random.hpp"
#include "base/lock.hpp"
#include "fabric/head.hpp"
#include "fabric/transport.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <deque>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

// The contract of transports: tests of the promises that every transport makes. Each test runs on a World, which is
// several ranks, world[0] and so on, each with its end of the transport.
namespace tonari::fabric {
namespace {

constexpr std::uint64_t seed = 20240917;
const int polls_max = 200'000 * test::slowness();  // this many polls without a head are a failure

// The tests' heads carry the sender, its thread, a number that counts the heads of that thread, and whether the head
// asks for a reply. Their kinds belong to a protocol above the fabric and have no tail.
constexpr HeadKind kind_request{KindNumber<Protocol::message>::plain(1)};
constexpr HeadKind kind_reply{KindNumber<Protocol::message>::plain(7)};

Head head_of(int source, int thread, std::uint32_t number, HeadKind kind = kind_request,
             std::uint64_t wants_reply = 0) {
  Head head{};
  head.kind = kind;
  head.source = static_cast<std::uint32_t>(source);
  head.context = static_cast<std::uint32_t>(thread);
  head.tag = number;
  head.set(wants_reply << 32 | number);
  return head;
}

/// Checks the numbers of each kind, sender and thread: each must be one more than the last.
struct Log {
  std::map<std::tuple<HeadKind, std::uint32_t, std::uint32_t>, std::uint32_t> next;
  std::size_t heads = 0;
  std::size_t wrong = 0;

  void add(const Head& head) {
    ++heads;
    if (next[{head.kind, head.source, head.context}]++ != head.tag) ++wrong;
    if ((head.as<std::uint64_t>() & 0xffffffff) != head.tag) ++wrong;
  }
};

template <class World>
class TransportContract : public testing::Test {
 public:
  TransportContract() : trace_(__FILE__, __LINE__, testing::Message() << "seed " << seed) {}

  void SetUp() override {
    if constexpr (requires { World::why_not(); }) {
      if (!World::why_not().empty()) GTEST_SKIP() << World::why_not();
    }
  }
  /// Rank 1 takes all heads. The sender polls too, since the last heads may need that to arrive.
  static void poll_until(World& world, Log& log, std::size_t heads) {
    for (int nothing = 0; log.heads < heads && nothing < polls_max;) {
      if (world[1].poll(16, [&](const Head& head) noexcept { log.add(head); }) == 0) ++nothing;
      world[0].poll(16, [](const Head&) noexcept {});
    }
    ASSERT_EQ(log.heads, heads);
    ASSERT_EQ(log.wrong, 0U);
  }
  /// Sends until there is no room, at most `most` heads. Only 64 refusals in a row count as a full transport, since a
  /// World may refuse at random.
  static std::uint32_t fill(typename World::Wire& wire, int from, int to, std::uint32_t number, std::uint32_t most) {
    int refused = 0;
    std::uint32_t sent = 0;
    while (sent < most && refused < 64) {
      if (wire.send(to, head_of(from, 0, number + sent), Lane::request) == Status::ok) {
        ++sent;
        refused = 0;
      } else {
        ++refused;
      }
    }
    return sent;
  }

 private:
  testing::ScopedTrace trace_;
};

TYPED_TEST_SUITE_P(TransportContract);

TYPED_TEST_P(TransportContract, DeliversAHeadUnchangedAndNothingElse) {
  TypeParam world(2, seed);
  Head sent = head_of(0, 7, 0);
  for (std::size_t i = 0; i < sent.payload.size(); ++i) sent.payload[i] = static_cast<std::byte>(i + 1);
  sent.inline_bytes = inline_bytes_max;
  while (world[0].send(1, sent, Lane::request) == Status::again) continue;

  Head got{};
  for (int polls = 0; got.kind != kind_request && polls < polls_max; ++polls) {
    world[1].poll(16, [&](const Head& head) noexcept { got = head; });
  }

  got.publish = sent.publish;
  EXPECT_EQ(std::memcmp(&got, &sent, sizeof sent), 0);
  EXPECT_EQ(world[1].poll(16, [](const Head&) noexcept {}), 0U);
  EXPECT_EQ(world[0].poll(16, [](const Head&) noexcept {}), 0U);
}

TYPED_TEST_P(TransportContract, KeepsEachThreadsOrderWithManySendersAndLosesOrDuplicatesNothing) {
  constexpr int senders = 3;
  constexpr int threads_each = 2;
  const auto heads_each = static_cast<std::uint32_t>(test::rounds(3000));
  TypeParam world(senders + 1, seed);
  SpinLock
      progress_locks[senders + 1];  // a sender polls too: it receives credits, and its last heads may wait for them
  std::atomic<bool> all_here{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < senders * threads_each; ++i) {
    threads.emplace_back([&, rank = 1 + i % senders, thread = i / senders] {
      std::uint32_t number = 0;
      while (!all_here.load()) {
        if (number < heads_each && world[rank].send(0, head_of(rank, thread, number), Lane::request) == Status::ok) {
          ++number;
          continue;
        }
        if (progress_locks[rank].try_lock()) {
          world[rank].poll(16, [](const Head&) noexcept {});
          progress_locks[rank].unlock();
        }
        ::sched_yield();
      }
    });
  }

  Log log;
  const std::size_t all = std::size_t{senders} * threads_each * heads_each;
  while (log.heads < all) {
    if (world[0].poll(16, [&](const Head& head) noexcept { log.add(head); }) == 0) ::sched_yield();
  }
  all_here.store(true);
  for (auto& thread : threads) thread.join();

  EXPECT_EQ(log.wrong, 0U);
  EXPECT_EQ(world[0].poll(16, [](const Head&) noexcept {}), 0U);
}

TYPED_TEST_P(TransportContract, RefusesWhenFullAndRecoversWithNothingLostOrDuplicated) {
  TypeParam world(2, seed);
  Log log;
  std::uint32_t sent = 0;
  for (int round = 0; round < 40; ++round) {
    std::uint32_t more = 0;
    // Credits may still be under way, or may be refused at first.
    while ((more = this->fill(world[0], 0, 1, sent, 100'000)) == 0) {
      for (const int rank : {1, 0}) world[rank].poll(16, [](const Head&) noexcept {});
    }
    ASSERT_LT(more, 100'000U) << "round " << round << ": the transport takes memory without bound";
    sent += more;

    this->poll_until(world, log, sent);
  }
}

TYPED_TEST_P(TransportContract, DeliversNoMoreOfEachLaneThanThePollAllows) {
  TypeParam world(2, seed);
  for (std::uint32_t i = 0; i < 12; ++i) {
    while (world[0].send(1, head_of(0, 0, i), Lane::request) == Status::again) continue;
    ASSERT_EQ(world[0].send(1, head_of(0, 0, i, kind_reply), Lane::reply), Status::ok);
  }

  Log log;
  for (int polls = 0; log.heads < 24 && polls < polls_max; ++polls) {
    std::size_t requests = 0;
    std::size_t replies = 0;
    world[0].poll(16, [](const Head&) noexcept {});
    const std::size_t heads = world[1].poll(2, [&](const Head& head) noexcept {
      log.add(head);
      ++(head.kind == kind_reply ? replies : requests);
    });
    ASSERT_EQ(heads, requests + replies);
    ASSERT_LE(requests, 2U);
    ASSERT_LE(replies, 2U);
  }
  EXPECT_EQ(log.heads, 24U);
  EXPECT_EQ(log.wrong, 0U);
}

// Rank 0 sends requests to ranks 1 and 2, never for more replies than are reserved, and polls at random. No thread is
// ever between claim and publication here, so no reply may be refused.
TYPED_TEST_P(TransportContract, AlwaysHasRoomForRepliesToRequestsThatReservedIt) {
  const auto requests_each = static_cast<std::uint32_t>(test::rounds(2000));
  TypeParam world(3, seed);
  std::mt19937_64 random(seed);
  std::size_t reserved = 0;
  std::uint32_t asked[3] = {};
  std::uint32_t answered[3] = {};
  std::size_t refused = 0;
  Log replies;
  const auto answer = [&](int self) {
    return [&, self](const Head& head) noexcept {
      if (head.kind != kind_request) return;
      if (world[self].send(0, head_of(self, 0, answered[self]++, kind_reply), Lane::reply) != Status::ok) ++refused;
    };
  };

  for (int steps = 0; replies.heads < 2 * requests_each && steps < 1'000'000 * test::slowness(); ++steps) {
    const int peer = 1 + static_cast<int>(random() % 2);
    if (reserved < TypeParam::replies_reserved && asked[peer] < requests_each) {
      if (world[0].send(peer, head_of(0, peer, asked[peer]), Lane::request) == Status::ok) ++asked[peer], ++reserved;
    }
    if (random() % 4 == 0) world[peer].poll(16, answer(peer));
    if (random() % 64 == 0 || reserved == TypeParam::replies_reserved) {
      world[0].poll(1 + random() % 32, [&](const Head& head) noexcept {
        replies.add(head);
        --reserved;
      });
    }
    ASSERT_EQ(refused, 0U) << "after " << replies.heads << " replies";
  }
  EXPECT_EQ(replies.heads, 2 * requests_each);
  EXPECT_EQ(replies.wrong, 0U);
}

TYPED_TEST_P(TransportContract, TwoRanksThatFillEachOthersRingsBothDrain) {
  TypeParam world(2, seed);
  std::uint32_t sent[2];
  sent[0] = this->fill(world[0], 0, 1, 0, 100'000);
  sent[1] = this->fill(world[1], 1, 0, 0, 100'000);

  // Each handler replies to a request while its own requests fill the peer's ring, up to the number of reserved
  // replies.
  Log logs[2];
  std::uint32_t answered[2] = {};
  std::size_t refused = 0;
  const auto wanted = [&](int rank) {
    return std::min<std::size_t>(sent[rank],
                                 TypeParam::replies_reserved);  // the replies for which `rank` has reserved room
  };
  const std::size_t heads[2] = {sent[1] + wanted(0), sent[0] + wanted(1)};
  for (int nothing = 0; (logs[0].heads < heads[0] || logs[1].heads < heads[1]) && nothing < polls_max; ++nothing) {
    for (const int self : {0, 1}) {
      world[self].poll(16, [&](const Head& head) noexcept {
        logs[self].add(head);
        if (head.kind != kind_request || answered[self] == wanted(1 - self)) return;
        const Head reply = head_of(self, 0, answered[self]++, kind_reply);
        if (world[self].send(1 - self, reply, Lane::reply) != Status::ok) ++refused;
      });
    }
  }

  EXPECT_EQ(refused, 0U);
  for (const int self : {0, 1}) {
    EXPECT_EQ(logs[self].heads, heads[self]);
    EXPECT_EQ(logs[self].wrong, 0U);
    EXPECT_GT(this->fill(world[self], self, 1 - self, sent[self], 100'000), 0U);
  }
}

TYPED_TEST_P(TransportContract, AFloodDelaysAnotherSendersHeadOnlyByHeadsAcceptedBeforeIt) {
  TypeParam world(3, seed);
  std::uint32_t flooded = this->fill(world[1], 1, 0, 0, 100'000);
  std::size_t taken = 0;   // heads of the flood that rank 0 has taken
  std::uint32_t mine = 0;  // heads that rank 2 has sent
  std::size_t arrived = 0;
  std::size_t ahead = 0;  // heads of the flood that waited when rank 2's head was accepted
  std::size_t after = 0;  // heads of the flood taken since then
  for (int polls = 0; arrived < 20 && polls < polls_max; ++polls) {
    if (mine == arrived && world[2].send(0, head_of(2, 0, mine), Lane::request) == Status::ok) {
      ++mine;
      ahead = flooded - taken;
      after = 0;
    }
    flooded += this->fill(world[1], 1, 0, flooded, 100'000);
    world[0].poll(16, [&](const Head& head) noexcept {
      if (head.source == 2) {
        ++arrived;
        return;
      }
      ++taken;
      if (mine > arrived) ++after;
    });
    for (const int sender : {1, 2}) world[sender].poll(16, [](const Head&) noexcept {});
    ASSERT_LE(after, ahead + TypeParam::overtaken_max);
  }
  EXPECT_EQ(arrived, 20U);
}

// Every rank sends requests to all others and replies to theirs, in threads. A reply may be refused while another
// thread is between claim and publication. It is then sent later, and no reply is lost.
TYPED_TEST_P(TransportContract, RanksThatSendRequestsToEachOtherAllGetEveryReply) {
  constexpr int ranks = 4;
  const auto asks_each = static_cast<std::uint32_t>(test::rounds(2000));
  TypeParam world(ranks, seed);
  std::atomic<int> finished{0};
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(rank));
      std::uint32_t asked[ranks] = {};
      std::uint32_t answered[ranks] = {};
      std::deque<std::pair<int, Head>> held;
      Log log;
      std::uint32_t asked_all = 0;
      std::uint32_t answers = 0;
      bool told = false;
      while (finished.load() < ranks) {
        const int peer = (rank + 1 + static_cast<int>(random() % (ranks - 1))) % ranks;
        if (asked_all < asks_each && asked_all - answers < TypeParam::replies_reserved &&
            world[rank].send(peer, head_of(rank, 0, asked[peer]), Lane::request) == Status::ok) {
          ++asked[peer];
          ++asked_all;
        }
        while (!held.empty() && world[rank].send(held.front().first, held.front().second, Lane::reply) == Status::ok) {
          held.pop_front();
        }
        const std::size_t heads = world[rank].poll(16, [&](const Head& head) noexcept {
          log.add(head);
          if (head.kind == kind_reply) {
            ++answers;
            return;
          }
          const int asker = static_cast<int>(head.source);
          const Head reply = head_of(rank, 0, answered[asker]++, kind_reply);
          if (!held.empty() || world[rank].send(asker, reply, Lane::reply) != Status::ok) {
            held.emplace_back(asker, reply);
          }
        });
        if (answers == asks_each && held.empty() && !told) {
          told = true;
          ++finished;
        }
        if (heads == 0) ::sched_yield();
      }
      wrong += log.wrong;
    });
  }
  for (auto& thread : threads) thread.join();

  EXPECT_EQ(wrong.load(), 0U);
}

REGISTER_TYPED_TEST_SUITE_P(TransportContract, DeliversAHeadUnchangedAndNothingElse,
                            KeepsEachThreadsOrderWithManySendersAndLosesOrDuplicatesNothing,
                            RefusesWhenFullAndRecoversWithNothingLostOrDuplicated,
                            DeliversNoMoreOfEachLaneThanThePollAllows, AlwaysHasRoomForRepliesToRequestsThatReservedIt,
                            TwoRanksThatFillEachOthersRingsBothDrain,
                            AFloodDelaysAnotherSendersHeadOnlyByHeadsAcceptedBeforeIt,
                            RanksThatSendRequestsToEachOtherAllGetEveryReply);

}  // namespace
}  // namespace tonari::fabric
