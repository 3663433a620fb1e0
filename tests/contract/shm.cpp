#include "fabric/shm.hpp"

#include "worlds.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

// Tests promises that only rings in shared memory make: a writer may stop or die at any step, and a reader may sleep.
namespace tonari::fabric {
namespace {

constexpr HeadKind kind_request{1};

Head head_of(int source, std::uint32_t number) {
  Head head{};
  head.kind = kind_request;
  head.source = static_cast<std::uint32_t>(source);
  head.tag = number;
  return head;
}

/// A writer that stops between claiming a slot and publishing it.
void claim_only(RingMemory& ring, int claimer) {
  const std::uint64_t position = claimed_count(ring.tail.load());
  ring.tail.store((position + 1) << count_shift | static_cast<std::uint64_t>(claimer) << 1);
}
/// The step that the writer would do next.
void publish_late(RingMemory& ring, std::uint64_t position, std::uint64_t slots, int claimer_before, Head head) {
  head.publish = static_cast<std::uint16_t>(((position / slots + 1) & 3) | static_cast<unsigned>(claimer_before) << 2);
  Head& slot = ring.slots[position % slots];
  std::memcpy(reinterpret_cast<std::byte*>(&slot) + 8, reinterpret_cast<const std::byte*>(&head) + 8, 56);
  std::uint64_t word;
  std::memcpy(&word, &head, sizeof word);
  first_word(slot).store(word, std::memory_order_release);
}

struct ShmGaps : testing::Test {
  ShmWorld<64> world{3, 0};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> got;  // {source, number} of each head

  std::size_t poll(std::size_t heads_max = 16) {
    world[0].expect_gap();
    return world[0].poll(heads_max, [&](const Head& head) noexcept { got.emplace_back(head.source, head.tag); });
  }
};
using Got = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST_F(ShmGaps, AClaimedSlotIsSkippedAndDeliveredLaterInPairOrder) {
  ASSERT_EQ(world[1].send(0, head_of(1, 0), Lane::request), Status::ok);
  claim_only(*world.requests[0], 2);
  ASSERT_EQ(world[1].send(0, head_of(1, 1), Lane::request), Status::ok);
  ASSERT_EQ(world[1].send(0, head_of(1, 2), Lane::request), Status::ok);

  while (poll(1) != 0) continue;
  EXPECT_EQ(got, (Got{{1, 0}, {1, 1}, {1, 2}}));

  publish_late(*world.requests[0], 1, 64, 1, head_of(2, 0));
  ASSERT_EQ(world[2].send(0, head_of(2, 1), Lane::request), Status::ok);
  while (poll() != 0) continue;
  EXPECT_EQ(got, (Got{{1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}}));
}

TEST_F(ShmGaps, AReaderFindsAGapWithoutBeingToldAndSkipsIt) {
  claim_only(*world.requests[0], 2);
  ASSERT_EQ(world[1].send(0, head_of(1, 0), Lane::request), Status::ok);

  for (int polls = 0; got.empty() && polls < 10'000; ++polls) {
    world[0].poll(16, [&](const Head& head) noexcept { got.emplace_back(head.source, head.tag); });
  }

  EXPECT_EQ(got, (Got{{1, 0}}));
}

TEST_F(ShmGaps, TheReaderWaitsForASlotAsLongAsItsClaimerLives) {
  claim_only(*world.requests[0], 2);
  std::uint32_t sent = 0;
  while (world[1].send(0, head_of(1, sent), Lane::request) == Status::ok) ++sent;
  EXPECT_EQ(sent, 63U);
  while (poll() != 0) continue;
  EXPECT_EQ(got.size(), 63U);
  EXPECT_EQ(world[1].send(0, head_of(1, sent), Lane::request), Status::again);  // the claimer still owns its slot

  publish_late(*world.requests[0], 0, 64, 0, head_of(2, 0));
  while (poll() != 0) continue;

  EXPECT_EQ(got.back(), (std::pair<std::uint32_t, std::uint32_t>{2, 0}));
  EXPECT_EQ(world[1].send(0, head_of(1, sent), Lane::request), Status::ok);
}

TEST_F(ShmGaps, ADeadClaimersSlotIsAbandonedAnywhereInTheRing) {
  std::uint32_t sent = 0;
  for (int round = 0; round < 300; ++round) {
    got.clear();
    world.street.dead[2] = false;
    const std::uint32_t first = sent;
    for (int i = round % 5; i > 0; --i) ASSERT_EQ(world[1].send(0, head_of(1, sent++), Lane::request), Status::ok);
    claim_only(*world.requests[0], 2);
    for (int i = round % 3; i > 0; --i) ASSERT_EQ(world[1].send(0, head_of(1, sent++), Lane::request), Status::ok);
    while (poll() != 0) continue;

    world.street.dead[2] = true;
    poll();
    ASSERT_EQ(world[1].send(0, head_of(1, sent++), Lane::request), Status::ok);
    while (poll() != 0) continue;

    ASSERT_EQ(got.size(), sent - first) << "round " << round;
    for (std::uint32_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i].second, first + i) << "round " << round;
  }
}

TEST_F(ShmGaps, ASendToADeadPeerReturnsPeerGone) {
  world.street.dead[0] = true;

  EXPECT_EQ(world[1].send(0, head_of(1, 0), Lane::request), Status::peer_gone);
  EXPECT_EQ(world[1].send(0, head_of(1, 0), Lane::reply), Status::peer_gone);
  EXPECT_EQ(world[1].send(2, head_of(1, 0), Lane::request), Status::ok);
}

TEST(ShmSleep, NoWakeUpIsLost) {
  constexpr std::uint32_t rounds = 20'000;
  ShmWorld<64> world(2, 0);
  std::atomic<std::uint32_t>& doorbell = world.street.doorbells[0];
  std::atomic<std::uint32_t> taken{0};
  std::size_t sleeps = 0;
  std::size_t wrong = 0;

  std::thread writer([&] {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      while (i % 4 == 0 && taken.load() != i)
        ::sched_yield();  // the ring is empty, so the reader may be about to sleep
      while (world[1].send(0, head_of(1, i), i % 2 == 0 ? Lane::request : Lane::reply) == Status::again)
        ::sched_yield();
    }
  });
  const auto take = [&](const Head& head) noexcept {
    if (head.source != 1) ++wrong;
    taken.fetch_add(1);
  };
  while (taken.load() < rounds) {
    const std::uint32_t seen = doorbell.load(std::memory_order_acquire);
    if (world[0].poll(16, take) != 0) continue;
    if (world[0].fall_asleep()) {
      futex_wait(doorbell, seen, std::chrono::hours(1));  // if a wake-up is lost, the test hangs here
      ++sleeps;
    }
    world[0].wake_up();
  }
  writer.join();

  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(taken.load(), rounds);
  EXPECT_GT(sleeps, 0U);
}

}  // namespace
}  // namespace tonari::fabric
