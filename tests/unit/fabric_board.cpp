#include "fabric/board.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace tonari::fabric {
namespace {

using Side = Board::Side;

/// The boards of several ranks, and the view that a group has of them.
struct Group {
  explicit Group(std::size_t ranks, std::uint32_t base = 0) : memory(ranks) {
    for (auto& each : memory) each = std::make_unique<BoardMemory>();
    meet(base);
  }
  void meet(std::uint32_t base) {
    boards.clear();
    std::vector<Board::Member> members;
    for (auto& each : memory) members.push_back({each.get(), base});
    for (std::size_t self = 0; self < memory.size(); ++self) boards.push_back(std::make_unique<Board>(members, self));
  }
  Board& operator[](std::size_t rank) { return *boards[rank]; }

  std::vector<std::unique_ptr<BoardMemory>> memory;
  std::vector<std::unique_ptr<Board>> boards;
};

TEST(Board, ShowsALineToAllRanksAndOnlyInItsRound) {
  Group group(3);
  const std::uint32_t round = group[1].begin();
  EXPECT_EQ(group[0].look(1, round, Side::entry), nullptr);

  group[1].line(round, Side::entry).bytes = 77;
  group[1].show(round, Side::entry);

  for (const std::size_t reader : {0, 1, 2}) {
    const Board::Line* line = group[reader].look(1, round, Side::entry);
    ASSERT_NE(line, nullptr);
    EXPECT_EQ(line->bytes, 77u);
    EXPECT_EQ(group[reader].look(1, round, Side::exit), nullptr);
    EXPECT_EQ(group[reader].look(0, round, Side::entry), nullptr);
    EXPECT_EQ(group[reader].look(1, round + 1, Side::entry), nullptr);
    EXPECT_EQ(group[reader].look(1, round + rounds_shown, Side::entry), nullptr);
  }
}

TEST(Board, HasRoomForALimitedNumberOfRoundsUntilAllRanksEndTheFirst) {
  Group group(2);
  for (std::uint32_t round = 1; round <= rounds_shown; ++round) {
    EXPECT_TRUE(group[0].has_room(round, 8));
    group[0].show(round, Side::entry);
    group[0].end(round);
  }
  EXPECT_FALSE(group[0].has_room(rounds_shown + 1, 8));
  EXPECT_FALSE(group[0].has_room(large_blocks + 1, large_block_bytes));

  group[1].end(1);

  EXPECT_TRUE(group[0].has_room(rounds_shown + 1, 8));
  EXPECT_FALSE(group[0].has_room(rounds_shown + 2, 8));
  EXPECT_TRUE(group[0].has_room(large_blocks + 1, large_block_bytes));
  EXPECT_FALSE(group[0].has_room(large_blocks + 2, large_block_bytes));
}

TEST(Board, EndsARoundOnlyAfterAllEarlierRounds) {
  Group group(2);
  group[0].end(2);
  group[0].end(3);
  EXPECT_FALSE(group[1].has_ended(0, 1));
  EXPECT_FALSE(group[1].has_ended(0, 2));

  group[0].end(1);

  EXPECT_TRUE(group[1].has_ended(0, 1));
  EXPECT_TRUE(group[1].has_ended(0, 3));
  EXPECT_FALSE(group[1].has_ended(0, 4));
}

TEST(Board, ALineTellsWhichRoundsItsRankHasEnded) {
  Group group(2, 41);
  group[0].end(1);
  group[0].end(2);
  group[0].show(3, Side::entry);
  const Board::Line* line = group[1].look(0, 3, Side::entry);
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(group[1].ended_by(0, *line), 2u);

  group[1].note_all_ended(2);

  EXPECT_TRUE(group[1].has_room(2 + rounds_shown, 8));
}

TEST(Board, WorksAcrossTheWrapOfTheRoundNumber) {
  Group group(2, 0);
  for (auto& each : group.memory) each->ended = ~std::uint32_t{0} - 2;
  group.meet(~std::uint32_t{0} - 2);
  for (std::uint32_t round = 1; round <= 2 * rounds_shown; ++round) {
    for (const std::size_t rank : {0, 1}) {
      EXPECT_TRUE(group[rank].has_room(round, 8));
      group[rank].show(round, Side::entry);
    }
    for (const std::size_t rank : {0, 1}) {
      EXPECT_NE(group[rank].look(1 - rank, round, Side::entry), nullptr);
      EXPECT_FALSE(group[1 - rank].has_ended(rank, round));
      group[rank].end(round);
      EXPECT_TRUE(group[1 - rank].has_ended(rank, round));
    }
  }
}

TEST(Boards, GivesEachBoardToOneGroupUntilTheGroupHasEnded) {
  std::vector<BoardMemory> own(boards_max);
  BoardMemory other{};
  Boards boards(own.data());
  std::vector<BoardPlace> taken;
  for (std::size_t i = 0; i < boards_max; ++i) taken.push_back(boards.take());
  EXPECT_EQ(boards.take().index, BoardPlace::none);

  const BoardPlace place = taken[3];
  auto board = std::make_unique<Board>(std::vector<Board::Member>{{&own[place.index], place.base}, {&other, 0}}, 0);
  const std::uint32_t round = board->begin();
  board->show(round, Side::entry);
  board->end(round);
  boards.give_back(place, std::move(board));
  EXPECT_EQ(boards.take().index, BoardPlace::none) << "the other rank may still look at it";
  other.ended = round;
  const BoardPlace again = boards.take();

  EXPECT_EQ(again.index, place.index);
  EXPECT_EQ(again.base, place.base + 1) << "a rank would take an old line for a new one";
  boards.give_back(taken[5]);
  EXPECT_EQ(boards.take().index, taken[5].index);
}

// Threads run as many rounds ahead of each other as the boards allow. Each reads exactly the bytes that were shown.
TEST(Board, CarriesEveryBlockWholeBetweenThreads) {
  constexpr std::size_t ranks = 3;
  constexpr std::uint32_t rounds = 2000;
  constexpr std::size_t bytes = large_block_bytes;  // the size of which a board has the fewest blocks
  Group group(ranks);
  std::vector<std::thread> threads;
  std::vector<int> wrong(ranks);
  for (std::size_t self = 0; self < ranks; ++self) {
    threads.emplace_back([&group, &wrong, self] {
      Board& board = group[self];
      for (std::uint32_t round = 1; round <= rounds; ++round) {
        while (!board.has_room(round, bytes)) std::this_thread::yield();
        *reinterpret_cast<std::uint32_t*>(board.block(round, bytes)) = round * 10 + static_cast<std::uint32_t>(self);
        board.show(round, Side::entry);
        for (std::size_t member = 0; member < ranks; ++member) {
          while (board.look(member, round, Side::entry) == nullptr) std::this_thread::yield();
          const auto seen = *reinterpret_cast<const std::uint32_t*>(board.block_of(member, round, bytes));
          if (seen != round * 10 + static_cast<std::uint32_t>(member)) ++wrong[self];
        }
        board.end(round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(ranks));
}

}  // namespace
}  // namespace tonari::fabric
