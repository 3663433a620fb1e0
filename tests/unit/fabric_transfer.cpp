#include "fabric/transfer.hpp"

#include <gtest/gtest.h>

#include <sched.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace tonari::fabric {
namespace {

TEST(FabricTransfer, EachChunkIsTakenOnceAndNoneBeyondTheLast) {
  TransferMemory transfer{};
  transfer.open(3);

  EXPECT_EQ(transfer.take_chunk(3, 2), 0U);
  EXPECT_EQ(transfer.take_chunk(3, 2), 1U);
  EXPECT_FALSE(transfer.take_chunk(3, 2).has_value());
}

TEST(FabricTransfer, ALateClaimTakesNoChunkOfALaterTransfer) {
  TransferMemory transfer{};
  transfer.open(3);
  ASSERT_EQ(transfer.take_chunk(3, 8), 0U);

  transfer.open(4);

  EXPECT_FALSE(transfer.take_chunk(3, 8).has_value());
  EXPECT_EQ(transfer.take_chunk(4, 8), 0U);
}

TEST(FabricTransfer, ClosingAFinishedTransferShowsAllCopiedBytes) {
  fabric::TransferMemory transfer{};
  transfer.open(1);
  int copied = 0;
  std::jthread sender([&] {
    (void)transfer.copy_chunks(1, 1, 1, [&](std::uint64_t, std::uint64_t) {
      copied = 7;
      return Status::ok;
    });
    transfer.open(2);
  });
  while (transfer.take_chunk(2, 1) == std::nullopt) std::this_thread::yield();  // does not synchronise with the copy

  EXPECT_TRUE(transfer.close(1));
  EXPECT_EQ(copied, 7);
}

TEST(FabricTransfer, AFailureOfOneSideFailsTheTransfer) {
  TransferMemory transfer{};
  transfer.open(1);
  EXPECT_FALSE(transfer.finish_chunk(3, Status::ok));
  EXPECT_FALSE(transfer.finish_chunk(3, Status::bad_address));
  EXPECT_TRUE(transfer.finish_chunk(3, Status::ok));
  EXPECT_EQ(transfer.outcome(), Status::bad_address);

  transfer.open(2);
  EXPECT_EQ(transfer.outcome(), Status::ok);
}

TEST(FabricTransfer, OneOfTwoSidesFinishesAndSeesAllCopiedBytes) {
  constexpr std::uint32_t rounds = 2000;
  constexpr std::uint32_t chunks = 7;
  TransferMemory transfer{};
  std::vector<std::uint32_t> copied(
      chunks);  // not atomic: only finish_chunk() orders these writes before the finisher's reads
  std::atomic<std::uint32_t> opened{0};
  std::atomic<std::uint32_t> finished{0};
  std::atomic<std::uint32_t> wrong{0};
  const auto side = [&](std::uint32_t generation) {
    while (const auto chunk = transfer.take_chunk(generation, chunks)) {
      copied[*chunk] = generation;
      if (!transfer.finish_chunk(chunks, Status::ok)) continue;
      for (const std::uint32_t seen : copied) {
        if (seen != generation) ++wrong;
      }
      if (finished.fetch_add(1) + 1 != generation) ++wrong;
    }
  };

  std::thread other([&] {
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      while (opened.load() < round) ::sched_yield();
      side(round);
    }
  });
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    transfer.open(round);
    opened.store(round);
    side(round);
    while (finished.load() < round) ::sched_yield();
  }
  other.join();

  EXPECT_EQ(finished.load(), rounds);
  EXPECT_EQ(wrong.load(), 0U);
}

struct FabricTickets : testing::Test {
  std::unique_ptr<TransferMemory[]> memory = std::make_unique<TransferMemory[]>(tickets_max);
  Tickets tickets{memory.get()};
};

TEST_F(FabricTickets, AreAllDifferentUntilTheyRunOut) {
  std::set<std::uint32_t> indices;
  while (const auto ticket = tickets.take()) indices.insert(ticket->index);

  EXPECT_EQ(indices.size(), tickets_max);
  EXPECT_EQ(*indices.rbegin(), tickets_max - 1);
}

TEST_F(FabricTickets, AReturnedTicketIsTakenAgainAsANewGeneration) {
  std::vector<Tickets::Ticket> all;
  while (const auto ticket = tickets.take()) all.push_back(*ticket);
  ASSERT_EQ(memory[200].take_chunk(all[200].generation, 5), 0U);

  tickets.give_back(200);
  const auto again = tickets.take();

  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->index, 200U);
  EXPECT_NE(again->generation, all[200].generation);
  EXPECT_FALSE(memory[200].take_chunk(all[200].generation, 5).has_value());
  EXPECT_EQ(memory[200].take_chunk(again->generation, 5), 0U);
  EXPECT_FALSE(tickets.take().has_value());
}

}  // namespace
}  // namespace tonari::fabric
