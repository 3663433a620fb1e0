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

// Boards: what the ranks of one group and host show each other. A collective is a round; in each round a rank writes on
// its own board, which nobody else writes, and reads those of the others. So a barrier of two costs each side one
// line's journey, and of many on few cores each rank one turn on a core.
//
//   0       64       128         192                     8 Ki           40 Ki         296 Ki
//   +-------+--------+--------+  +--------+--------+     +--------------+--------------+
//   | ended | entry  | exit   |..| entry  | exit   |     | small blocks | large blocks |
//   +-------+--------+--------+  +--------+--------+     +--------------+--------------+
//            of round n, n + 1, ... mod rounds_shown      mod rounds_shown, large_blocks
//
// A line is there when it has the number of its round. What it says, and what is in the round's block, is up to who
// meets there.
//
// I1  a line or block is written only when all ranks have ended the round that had its place before    Board::has_room
// I2  numbers go on when a board is used again by another group, so that an old line is never taken for a new one
//
// Zeroed memory is a board on which no round was shown: numbers begin with 1.
inline constexpr std::size_t boards_max = 8;  // of one rank, one for each group it meets on them
inline constexpr std::uint32_t rounds_shown = 32;
inline constexpr std::uint32_t large_blocks = 4;
inline constexpr std::size_t line_payload_max = 48;
inline constexpr std::size_t small_block_bytes = 1024;
inline constexpr std::size_t large_block_bytes = 64 * 1024;

struct BoardMemory {
  struct alignas(head_bytes) Line {
    std::atomic<std::uint64_t> word;  // bits 0-31: number of the round; bits 32-63: rounds this rank has ended
    std::uint64_t bytes;              // of what is shown, wherever it lies
    std::array<std::byte, line_payload_max> payload;
  };
  struct Round {
    Line entry;
    Line exit;
  };
  alignas(head_bytes) std::atomic<std::uint32_t> ended;  // this and every earlier round: it reads nothing of them more
  std::array<Round, rounds_shown> rounds;
  alignas(4096) std::array<std::array<std::byte, small_block_bytes>, rounds_shown> small;
  std::array<std::array<std::byte, large_block_bytes>, large_blocks> large;
};
static_assert(sizeof(BoardMemory::Line) == head_bytes && offsetof(BoardMemory, small) == 8192);

/// Where on a rank's boards a group meets, as its ranks tell each other when the group is made.
struct BoardPlace {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::uint32_t index = none;
  std::uint32_t base = 0;  // number of the last round of the group before
};

/// One rank's way to the boards of its group. Rounds are counted from 1; all ranks begin them in the same order.
///
/// Threads: any; of one round one at a time.
/// Costs:   no system call. begin(), show() and end() are an atomic operation each; look() reads a line.
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

  /// The next round.
  std::uint32_t begin() noexcept { return begun_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// True once this rank may write what a round shows that has so many bytes.
  [[nodiscard]] bool has_room(std::uint32_t round, std::uint64_t bytes) noexcept {
    const std::uint32_t before = round - (bytes > small_block_bytes ? large_blocks : rounds_shown);
    return !is_after(before, all_ended_.load(std::memory_order_relaxed)) || have_all_ended(before);
  }
  /// This rank's own line and block, to be written before show(). At most large_block_bytes.
  [[nodiscard]] Line& line(std::uint32_t round, Side side) const noexcept { return line_of(self_, round, side); }
  [[nodiscard]] std::byte* block(std::uint32_t round, std::uint64_t bytes) const noexcept {
    return block_of(self_, round, bytes);
  }

  /// Publishes this rank's line and block.
  void show(std::uint32_t round, Side side) noexcept {
    const std::uint64_t ended = ended_.load(std::memory_order_relaxed);  // perhaps old: never too much
    // Sequentially consistent with look(): of two ranks that show lines at the same time, one sees both, and wakes who
    // sleeps. Release: what the line carries.
    line(round, side).word.store(ended << 32 | number(self_, round), std::memory_order_seq_cst);
  }
  /// A member's line, or null while it is not there.
  [[nodiscard]] const Line* look(std::size_t member, std::uint32_t round, Side side) const noexcept {
    const Line& theirs = line_of(member, round, side);
    const auto word = theirs.word.load(std::memory_order_seq_cst);  // and acquire: pairs with show()
    return static_cast<std::uint32_t>(word) == number(member, round) ? &theirs : nullptr;
  }
  /// A member's line, whether it is there or not. What it carries stays readable until this rank ends the round.
  [[nodiscard]] Line& line_of(std::size_t member, std::uint32_t round, Side side) const noexcept {
    BoardMemory::Round& lines = members_[member].memory->rounds[number(member, round) % rounds_shown];
    return side == Side::entry ? lines.entry : lines.exit;
  }
  /// A member's block, once its line is there.
  [[nodiscard]] std::byte* block_of(std::size_t member, std::uint32_t round, std::uint64_t bytes) const noexcept {
    BoardMemory& memory = *members_[member].memory;
    const std::uint32_t number = this->number(member, round);
    return bytes > small_block_bytes ? memory.large[number % large_blocks].data()
                                     : memory.small[number % rounds_shown].data();
  }
  /// Takes this rank's line back. Sequentially consistent as show().
  void hide(std::uint32_t round, Side side) noexcept {
    line(round, side).word.store(number(self_, round) ^ hidden, std::memory_order_seq_cst);
  }
  /// True when a member took its line back.
  [[nodiscard]] bool is_hidden(std::size_t member, std::uint32_t round, Side side) const noexcept {
    const auto word = line_of(member, round, side).word.load(std::memory_order_seq_cst);
    return static_cast<std::uint32_t>(word) == (number(member, round) ^ hidden);
  }
  /// The latest round before which `line` says that its rank has ended all.
  [[nodiscard]] std::uint32_t ended_by(std::size_t member, const Line& line) const noexcept {
    return static_cast<std::uint32_t>(line.word.load(std::memory_order_relaxed) >> 32) - members_[member].base;
  }
  /// All ranks have ended `round` and those before: saves has_room() a look at their boards.
  void note_all_ended(std::uint32_t round) noexcept {
    // Not a maximum: an older value of another thread's costs a look.
    if (is_after(round, all_ended_.load(std::memory_order_relaxed))) all_ended_.store(round, std::memory_order_relaxed);
  }
  [[nodiscard]] bool has_ended(std::size_t member, std::uint32_t round) const noexcept {
    const auto ended = members_[member].memory->ended.load(std::memory_order_seq_cst);  // acquire: what it wrote first
    return !is_after(number(member, round), ended);
  }
  /// This rank reads nothing of the round any more, and is told nothing.
  void end(std::uint32_t round) noexcept;
  /// Fetches the line of the next round, for writing: others have it from an earlier one.
  void expect(std::uint32_t round) const noexcept { prefetch_to_write(&line(round, Side::entry)); }

  /// Everyone has ended all rounds of this rank: its board may be used by another group.
  [[nodiscard]] bool is_free() const noexcept;

 private:
  static constexpr std::uint32_t hidden = std::uint32_t{1} << 31;  // no number that a line may have before this one

  // In the order of rounds, which wraps.
  static bool is_after(std::uint32_t left, std::uint32_t right) noexcept {
    return static_cast<std::int32_t>(left - right) > 0;
  }
  [[nodiscard]] std::uint32_t number(std::size_t member, std::uint32_t round) const noexcept {
    return members_[member].base + round;
  }
  [[gnu::noinline]] bool have_all_ended(std::uint32_t round) noexcept;

  std::vector<Member> members_;
  std::size_t self_;
  std::atomic<std::uint32_t> begun_{0};      // relaxed: ordered by the user's own order of collectives
  std::atomic<std::uint32_t> all_ended_{0};  // relaxed, and perhaps old

  SpinLock lock_;                           // of the next two, for writing
  std::atomic<std::uint32_t> ended_;        // as on the board
  std::vector<std::uint32_t> ended_early_;  // numbers of rounds that have ended before their turn: a heap
};

/// The boards of a rank, given to one group after the other.
///
/// Threads: any.
class Boards {
 public:
  explicit Boards(BoardMemory* memory) : memory_(memory) { closing_.reserve(boards_max); }

  /// A board that no group uses; BoardPlace::none when there is none.
  [[nodiscard]] BoardPlace take() noexcept;
  /// Gives back one that no group was made on.
  void give_back(BoardPlace place) noexcept;
  /// Gives back one that others of the group may still look at: it is taken again once they have ended all rounds.
  void give_back(BoardPlace place, std::unique_ptr<Board> board) noexcept;

 private:
  struct Closing {
    std::uint32_t index;
    std::unique_ptr<Board> board;
  };

  BoardMemory* memory_;
  SpinLock lock_;                               // of the rest
  std::uint32_t free_ = (1 << boards_max) - 1;  // a bit a board
  std::vector<Closing> closing_;
};

}  // namespace tonari::fabric
