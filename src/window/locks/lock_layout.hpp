#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tonari::window {

// A lock in memory that all ranks of a host map: a word, and a slot for each rank.
//
//   0      8        16        64            128
//   +------+--------+---------+-------------+-------------+----
//   | word | ticket |         | slots 0-7   | slots 8-15  | ...
//   +------+--------+---------+-------------+-------------+----
//
//   word    bits 0-31  rank + 1 of the holder; 0: none. Readers are not named here
//           bit 32     passing on: the holder has left and only chooses who is next
//           bit 33     waiters: someone may wait whom the holder has not seen
//           bit 34     news: a holder died, and who gets the lock next is to be told
//   ticket  how many have begun to wait
//   slot    bits 0-3   idle 0, reading 1, granted 2, waiting exclusive 4, waiting shared 8
//           bits 4-63  of a waiter: its ticket
//
// Who is to have the lock alone is named in the word, and *drains*: it enters once nobody reads. Who wants to read says
// so in its own slot and looks at the word; if that names someone, it waits like the others. Who leaves passes on: to
// all readers that came before the first writer, and to that writer, who drains. Whoever dies, dies anywhere: what it
// left is finished by those who wait, or by the next to come.
//
// I1  who enters alone is named in the word, and nobody alive reads           LockAlgorithm::is_drained, try_reading
// I2  a rank alone writes its slot, but: waiting becomes granted or reading   LockAlgorithm::grant, grant_readers
//     by who passes on; the slot of the dead becomes idle                     LockAlgorithm::is_alive_or_clear
// I3  granted: its rank is named, or will be by who passes on, and has not    LockAlgorithm::grant, find_next, step
//     entered. At most one slot of those alive is
// I4  nobody takes the word from one alive who is named in it. Only the       LockAlgorithm::take_over
//     dead are replaced, by compare-exchange
// I5  no waiter is forgotten: it writes its slot, then the bit; who passes    LockAlgorithm::enqueue, take_over,
//     on clears the bit, then looks at all slots                              begin_passing, free
// I6  who is named was alive afterwards, or is replaced: a waiter that has    LockAlgorithm::is_orphaned_by
//     looked when a death became known may sleep
// I7  news is in the word from the moment that a dead holder is not, until    LockAlgorithm::take_over, entered
//     the one who is told takes it
//
// Zeroed memory is a free lock. `Atomic` is another only in tests.
template <template <class> class Atomic>
struct BasicLockMemory {
  alignas(64) Atomic<std::uint64_t> word;
  Atomic<std::uint64_t> ticket;

  [[nodiscard]] Atomic<std::uint64_t>& slot(int rank) noexcept {
    return reinterpret_cast<Atomic<std::uint64_t>*>(this + 1)[rank];
  }
};
using LockMemory = BasicLockMemory<std::atomic>;
static_assert(sizeof(LockMemory) == 64 && offsetof(LockMemory, ticket) == 8);
static_assert(sizeof(std::atomic<std::uint64_t>) == 8 && std::atomic<std::uint64_t>::is_always_lock_free);

/// Of a lock for so many ranks: whole cache lines, to begin at one.
constexpr std::size_t lock_bytes(std::size_t ranks) noexcept { return sizeof(LockMemory) + (ranks + 7) / 8 * 64; }

namespace lock_word {
inline constexpr std::uint64_t passing_on = std::uint64_t{1} << 32;
inline constexpr std::uint64_t waiters = std::uint64_t{1} << 33;
inline constexpr std::uint64_t news = std::uint64_t{1} << 34;

constexpr std::uint64_t of(int rank) noexcept { return static_cast<std::uint32_t>(rank) + std::uint64_t{1}; }
/// -1 when there is none.
constexpr int holder(std::uint64_t word) noexcept { return static_cast<int>(static_cast<std::uint32_t>(word)) - 1; }
}  // namespace lock_word

namespace lock_slot {
inline constexpr std::uint64_t idle = 0;
inline constexpr std::uint64_t reading = 1;
inline constexpr std::uint64_t granted = 2;
inline constexpr std::uint64_t waiting_exclusive = 4;
inline constexpr std::uint64_t waiting_shared = 8;
inline constexpr std::uint64_t waiting = waiting_exclusive | waiting_shared;
inline constexpr int per_line = 8;
inline constexpr int ticket_shift = 4;  // of two waiters of one kind the one with the smaller slot came first
}  // namespace lock_slot

}  // namespace tonari::window
