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
//   word    bits 0-31  rank + 1 of the holder; 0: no holder. Readers are not named here
//           bit 32     passing on: the holder has left and only chooses the next holder
//           bit 33     waiters: there may be a waiter that the holder has not seen
//           bit 34     news: a holder died, and the next holder must be told
//   ticket  the number of ranks that have begun to wait
//   slot    bits 0-3   idle 0, reading 1, granted 2, waiting exclusive 4, waiting shared 8
//           bits 4-63  of a waiter: its ticket
//
// A writer is named in the word, and then *drains*: it enters once no rank reads. A reader writes its own slot and
// looks at the word; if the word names a rank, the reader waits like the others. The leaving holder passes the lock on:
// to all readers that came before the first writer, and to that writer, which drains. A rank can die at any point: its
// work is finished by the waiting ranks, or by the next rank that comes.
//
// I1  a rank that enters exclusively is named in the word, and no live         LockAlgorithm::is_drained, try_reading
//     rank reads
// I2  only a rank itself writes its slot, with two exceptions: the rank that   LockAlgorithm::grant, grant_readers
//     passes on changes waiting to granted or reading; the slot of a dead      LockAlgorithm::is_alive_or_clear
//     rank becomes idle
// I3  granted: the rank is named, or will be by the rank that passes on, and   LockAlgorithm::grant, find_next, step
//     has not entered. At most one slot of a live rank is granted
// I4  the word is never taken from a live rank that it names. Only dead        LockAlgorithm::take_over
//     ranks are replaced, by compare-exchange
// I5  no waiter is forgotten: it writes its slot, then the bit; the rank       LockAlgorithm::enqueue, take_over,
//     that passes on clears the bit, then looks at all slots                      begin_passing, free
// I6  a named rank was alive after it was named, or it is replaced: a waiter   LockAlgorithm::is_orphaned_by
//     that has looked when a death became known may sleep
// I7  news is in the word from the moment that a dead holder is not, until     LockAlgorithm::take_over, entered
//     the rank that is told takes it
//
// Memory of zeros is a free lock. `Atomic` differs only in tests.
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

/// Returns the size of a lock for this many ranks: whole cache lines. It must begin at a cache line.
constexpr std::size_t lock_bytes(std::size_t ranks) noexcept { return sizeof(LockMemory) + (ranks + 7) / 8 * 64; }

namespace lock_word {
inline constexpr std::uint64_t passing_on = std::uint64_t{1} << 32;
inline constexpr std::uint64_t waiters = std::uint64_t{1} << 33;
inline constexpr std::uint64_t news = std::uint64_t{1} << 34;

constexpr std::uint64_t of(int rank) noexcept { return static_cast<std::uint32_t>(rank) + std::uint64_t{1}; }
/// Returns -1 if there is no holder.
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
inline constexpr int ticket_shift = 4;  // of two waiters of one kind, the smaller slot came first
}  // namespace lock_slot

}  // namespace tonari::window
