#pragma once

#include "base/cache.hpp"
#include "base/lock.hpp"
#include "fabric/head.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tonari::fabric {

// Boards: memory in which the ranks of a group on one host publish values to each other. A collective is a round. In
// each round a rank writes to its own board, which no other rank writes, and reads the boards of the others. So a
// barrier of two ranks costs each rank the transfer of one cache line; a barrier of many ranks on few cores costs each
// rank one turn on a core.
//
//   0       64       128         192                     8 Ki           40 Ki         296 Ki
//   +-------+--------+--------+  +--------+--------+     +--------------+--------------+
//   | ended | entry  | exit   |..| entry  | exit   |     | small blocks | large blocks |
//   +-------+--------+--------+  +--------+--------+     +--------------+--------------+
//            of round n, n + 1, ... mod rounds_shown      mod rounds_shown, large_blocks
//
// A line is published when it has the number of its round. The collective decides what it and the round's block
// contain.
//
// I1  a line or block is written only when all ranks have ended the round that had its place before    Board::has_room
// I2  round numbers continue when another group uses a board, so that an old line is never taken for a new one
//
// Zeroed memory is a board without published rounds: numbers begin with 1.
inline constexpr std::size_t boards_max = 8;  // per rank; each group uses one
inline constexpr std::uint32_t rounds_shown = 32;
inline constexpr std::uint32_t large_blocks = 4;
inline constexpr std::size_t line_payload_max = 48;
inline constexpr std::size_t small_block_bytes = 1024;
inline constexpr std::size_t large_block_bytes = 64 * 1024;

struct BoardMemory {
  struct alignas(head_bytes) Line {
    std::atomic<std::uint64_t> word;  // bits 0-31: number of the round; bits 32-63: rounds this rank has ended
    std::uint64_t bytes;              // size of the published data, here, in the block or elsewhere
    std::array<std::byte, line_payload_max> payload;
  };
  struct Round {
    Line entry;
    Line exit;
  };
  alignas(head_bytes) std::atomic<std::uint32_t> ended;  // the rank reads nothing more of rounds up to this one
  std::array<Round, rounds_shown> rounds;
  alignas(4096) std::array<std::array<std::byte, small_block_bytes>, rounds_shown> small;
  std::array<std::array<std::byte, large_block_bytes>, large_blocks> large;
};
static_assert(sizeof(BoardMemory::Line) == head_bytes && offsetof(BoardMemory, small) == 8192);

/// The board of one rank that a group uses. The ranks exchange these when the group is created.
struct BoardPlace {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::uint32_t index = none;
  std::uint32_t base = 0;  // number of the last round of the previous group
};

/// Access of one rank to the boards of its group. Rounds are counted from 1; all ranks begin them in the same order.
///
/// Threads: any, but one at a time per round.
/// Costs:   no system call. begin(), show() and end() are one atomic operation each; look() reads a cache line.
class Board {
 public:
  enum class Side : std::uint8_t { entry, exit };
  using Line = BoardMemory::Line;
  struct Member {
    BoardMemory* memory;
    std::uint32_t base;
  };

  /// `members` in the order of the group, of which this rank is `self`.
  Board(std::vector<Member> members, std::size_t self) noexcept
      : members_(std::move(members)), self_(self), ended_(members_[self].base) {
    ended_early_.reserve(rounds_shown);
  }

  /// Begins the next round and returns its number.
  std::uint32_t begin() noexcept { return begun_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Returns true once this rank may write its line and block of `round`, with `bytes` of data.
  [[nodiscard]] bool has_room(std::uint32_t round, std::uint64_t bytes) noexcept {
    const std::uint32_t before = round - (bytes > small_block_bytes ? large_blocks : rounds_shown);
    return !is_after(before, all_ended_.load(std::memory_order_relaxed)) || have_all_ended(before);
  }
  /// This rank's own line and block, to be written before show(). `bytes`: at most large_block_bytes.
  [[nodiscard]] Line& line(std::uint32_t round, Side side) const noexcept { return line_of(self_, round, side); }
  [[nodiscard]] std::byte* block(std::uint32_t round, std::uint64_t bytes) const noexcept {
    return block_of(self_, round, bytes);
  }

  /// Publishes this rank's line and block.
  void show(std::uint32_t round, Side side) noexcept {
    const std::uint64_t ended = ended_.load(std::memory_order_relaxed);  // may be old, which is safe
    // Sequentially consistent with look(): of two ranks that publish lines at the same time, one sees both lines and
    // wakes the sleepers. Release: the contents of the line and block.
    line(round, side).word.store(ended << 32 | number(self_, round), std::memory_order_seq_cst);
  }
  /// Returns a member's line, or null while it is not published.
  [[nodiscard]] const Line* look(std::size_t member, std::uint32_t round, Side side) const noexcept {
    const Line& theirs = line_of(member, round, side);
    const auto word = theirs.word.load(std::memory_order_seq_cst);  // and acquire: pairs with show()
    return static_cast<std::uint32_t>(word) == number(member, round) ? &theirs : nullptr;
  }
  /// Returns a member's line, published or not. Its contents stay until this rank ends the round.
  [[nodiscard]] Line& line_of(std::size_t member, std::uint32_t round, Side side) const noexcept {
    BoardMemory::Round& lines = members_[member].memory->rounds[number(member, round) % rounds_shown];
    return side == Side::entry ? lines.entry : lines.exit;
  }
  /// Returns a member's block. Read it only after the member's line is published.
  [[nodiscard]] std::byte* block_of(std::size_t member, std::uint32_t round, std::uint64_t bytes) const noexcept {
    BoardMemory& memory = *members_[member].memory;
    const std::uint32_t number = this->number(member, round);
    return bytes > small_block_bytes ? memory.large[number % large_blocks].data()
                                     : memory.small[number % rounds_shown].data();
  }
  /// Withdraws this rank's line. Sequentially consistent, as show().
  void hide(std::uint32_t round, Side side) noexcept {
    line(round, side).word.store(number(self_, round) ^ hidden, std::memory_order_seq_cst);
  }
  /// Whether a member has withdrawn its line.
  [[nodiscard]] bool is_hidden(std::size_t member, std::uint32_t round, Side side) const noexcept {
    const auto word = line_of(member, round, side).word.load(std::memory_order_seq_cst);
    return static_cast<std::uint32_t>(word) == (number(member, round) ^ hidden);
  }
  /// Returns the round up to which the rank of `line` has ended all rounds, as the line says.
  [[nodiscard]] std::uint32_t ended_by(std::size_t member, const Line& line) const noexcept {
    return static_cast<std::uint32_t>(line.word.load(std::memory_order_relaxed) >> 32) - members_[member].base;
  }
  /// Notes that all ranks have ended `round` and all earlier rounds. Saves has_room() a look at their boards.
  void note_all_ended(std::uint32_t round) noexcept {
    // Two threads may race, and the lower value may remain: that costs one look.
    if (is_after(round, all_ended_.load(std::memory_order_relaxed))) all_ended_.store(round, std::memory_order_relaxed);
  }
  [[nodiscard]] bool has_ended(std::size_t member, std::uint32_t round) const noexcept {
    const auto ended = members_[member].memory->ended.load(std::memory_order_seq_cst);  // acquire: its writes before
    return !is_after(number(member, round), ended);
  }
  /// Ends the round: this rank no longer reads its lines and blocks.
  void end(std::uint32_t round) noexcept;
  /// Prefetches the line of `round` for writing, since other cores have it from an earlier round.
  void expect(std::uint32_t round) const noexcept { prefetch_to_write(&line(round, Side::entry)); }

  /// Whether all ranks have ended all rounds that this rank has begun, so that another group may use its board.
  [[nodiscard]] bool is_free() const noexcept;

 private:
  static constexpr std::uint32_t hidden = std::uint32_t{1} << 31;  // number ^ hidden is the number of no earlier round

  // Compares round numbers, which wrap around.
  static bool is_after(std::uint32_t left, std::uint32_t right) noexcept {
    return static_cast<std::int32_t>(left - right) > 0;
  }
  [[nodiscard]] std::uint32_t number(std::size_t member, std::uint32_t round) const noexcept {
    return members_[member].base + round;
  }
  [[gnu::noinline]] bool have_all_ended(std::uint32_t round) noexcept;

  std::vector<Member> members_;
  std::size_t self_;
  std::atomic<std::uint32_t> begun_{0};      // relaxed: the user orders the collectives
  std::atomic<std::uint32_t> all_ended_{0};  // relaxed; may be old

  SpinLock lock_;                           // guards writes of the next two
  std::atomic<std::uint32_t> ended_;        // as on the board
  std::vector<std::uint32_t> ended_early_;  // a heap: numbers of rounds that ended before an earlier round
};

/// The boards of a rank. Each is used by one group at a time.
///
/// Threads: any.
class Boards {
 public:
  explicit Boards(BoardMemory* memory) : memory_(memory) { closing_.reserve(boards_max); }

  /// Returns a board that no group uses; its index is BoardPlace::none if there is none.
  [[nodiscard]] BoardPlace take() noexcept;
  /// Gives back a board that no group has used.
  void give_back(BoardPlace place) noexcept;
  /// Gives back a board that other ranks of the group may still read. It is reused once they have ended all rounds.
  void give_back(BoardPlace place, std::unique_ptr<Board> board) noexcept;

 private:
  struct Closing {
    std::uint32_t index;
    std::unique_ptr<Board> board;
  };

  BoardMemory* memory_;
  SpinLock lock_;                               // guards the rest
  std::uint32_t free_ = (1 << boards_max) - 1;  // one bit per board
  std::vector<Closing> closing_;
};

}  // namespace tonari::fabric
