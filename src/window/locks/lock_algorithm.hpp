#pragma once

#include "window/locks/lock_layout.hpp"

#include <tonari/window.hpp>

#include <atomic>
#include <cassert>
#include <concepts>
#include <cstdint>

namespace tonari::window {

/// The lock's view of the other ranks: whether they live, and how to wake them.
template <class T>
concept LockNeighbours = requires(const T& neighbours, int rank) {
  // False: the rank will execute no further instruction, and its writes are visible (acquire). It stays false for ever
  // and for all ranks: after one rank has seen it, every rank that asks later sees it.
  { neighbours.alive(rank) }
  noexcept->std::same_as<bool>;
  // Makes a sleeping rank look at ready() again. Called after the (sequentially consistent) change that the rank is to
  // see. A rank that goes to sleep announces that (sequentially consistent), looks at ready() once more, and only then
  // sleeps. When a rank dies, all other ranks look again as if they had been woken.
  { neighbours.wake(rank) }
  noexcept;
};

enum class [[nodiscard]] LockAnswer : std::uint8_t{
    not_held, held,
    held_after_death,  ///< A rank died while it held the lock exclusively: the protected data may be half written.
};

/// One rank's access to a lock in shared memory: one request at a time, moved on by calls that never wait.
///
/// Threads: one after the other, ordered by the caller.
/// Costs:   no system call, no allocation. Without contention, an exclusive lock and unlock are two read-modify-writes
///          and a look at all slots; shared ones are two exchanges of this rank's slot.
/// Order:   first come, first served, by tickets. A death is reported once, to the next holder. It is reported
///          needlessly if the dead holder was about to enter, or was about to leave.
template <LockNeighbours Neighbours, template <class> class Atomic = std::atomic>
class LockAlgorithm {
 public:
  using Memory = BasicLockMemory<Atomic>;

  LockAlgorithm(Memory& memory, int ranks, int self, Neighbours neighbours) noexcept
      : memory_(memory), ranks_(ranks), self_(self), neighbours_(neighbours) {}

  /// Begins to lock, and has locked if no other rank is in the way. If it returns not_held, call step() until it is
  /// held.
  LockAnswer request(LockMode mode) noexcept {
    assert(state_ == State::idle);
    if (mode == LockMode::shared) return request_shared();
    if (!try_alone()) [[unlikely]]
      return wait_for(LockMode::exclusive);
    drained_ = 0;
    if (is_drained()) [[likely]] {
      state_ = State::alone;
      return LockAnswer::held;
    }
    own().store(lock_slot::granted, std::memory_order_relaxed);  // other ranks read it only if this rank dies
    state_ = State::draining;
    return LockAnswer::not_held;
  }

  /// Moves a request on. Returns not_held while it must wait.
  LockAnswer step() noexcept {
    if (state_ == State::waiting) look();
    if (state_ == State::waiting || (state_ == State::draining && !is_drained())) return LockAnswer::not_held;
    // Before unlock(), so that a rank that passes on is not marked as granted. Relaxed: other ranks read it only if
    // this rank dies.
    if (state_ == State::draining) own().store(lock_slot::idle, std::memory_order_relaxed);
    return entered(state_ == State::draining ? State::alone : State::reading);
  }

  /// Returns true if step() would change something. For a last look before sleeping, and now and then while spinning.
  [[nodiscard]] bool ready() const noexcept {
    if (state_ == State::draining) return called() || !neighbours_.alive(drained_);
    if (own().load(std::memory_order_seq_cst) == lock_slot::reading) return true;
    const std::uint64_t word = memory_.word.load(std::memory_order_seq_cst);
    return is_named(word) || is_orphaned(word);
  }
  /// The first part of ready(), for spinning: reads only the slot that will change, and overlooks deaths.
  [[nodiscard]] bool called() const noexcept {
    if (state_ == State::waiting) return (own().load(std::memory_order_seq_cst) & lock_slot::waiting) == 0;
    return memory_.slot(drained_).load(std::memory_order_seq_cst) != lock_slot::reading;
  }

  /// Withdraws the request. Returns false if it is too late, because the lock is being granted: then call step() until
  /// it is held, or call this again.
  [[nodiscard]] bool abandon() noexcept {
    if (state_ == State::waiting) {
      std::uint64_t slot = own().load(std::memory_order_relaxed);
      // Either this rank or the rank that passes on changes the slot. Relaxed: it only says that nothing is wanted.
      if ((slot & lock_slot::waiting) != 0 &&
          own().compare_exchange_strong(slot, lock_slot::idle, std::memory_order_relaxed)) {
        state_ = State::idle;
        return true;
      }
      look();
    }
    if (state_ != State::draining || is_drained()) return false;
    leave_alone();
    return true;
  }

  /// Locks at once or not at all. May fail though the lock is free, if two ranks try at the same moment.
  LockAnswer try_lock(LockMode mode) noexcept {
    assert(state_ == State::idle);
    // Looks first, so that a rank that tries again and again does not disturb the holder.
    const std::uint64_t word = memory_.word.load(std::memory_order_relaxed);
    if (lock_word::holder(word) >= 0 && !is_orphaned(word)) return LockAnswer::not_held;
    if (mode == LockMode::shared && lock_word::holder(word) < 0) return try_shared();
    drained_ = 0;
    if (mode == LockMode::exclusive && !is_drained()) return LockAnswer::not_held;
    if (!(word == 0 ? try_alone() : try_orphaned(word, mode))) return LockAnswer::not_held;
    if (mode == LockMode::shared) return entered(State::reading);
    drained_ = 0;
    state_ = State::draining;
    if (is_drained()) return entered(State::alone);
    leave_alone();
    return LockAnswer::not_held;
  }

  void unlock() noexcept {
    assert(state_ == State::alone || state_ == State::reading);
    if (state_ == State::alone) return leave_alone();
    state_ = State::idle;
    // Release: a later writer may overwrite what was read. Sequentially consistent with the word: either the draining
    // rank sees that this rank has left, or this rank sees it and wakes it.
    own().store(lock_slot::idle, std::memory_order_seq_cst);
    wake_who_drains();
  }

  /// Called for a dead rank by the home that made its requests: gives back the lock that it held or waited for. If the
  /// dead rank held the lock exclusively, the next holder is told.
  void bury() noexcept {
    while (state_ == State::waiting || state_ == State::draining) {
      if (!abandon()) (void)step();
    }
    if (state_ == State::idle) return;
    // published by unlock()
    if (state_ == State::alone) memory_.word.fetch_or(lock_word::news, std::memory_order_relaxed);
    unlock();
  }

  /// Returns true if another rank seems to wait for this one; it may have withdrawn its request.
  [[nodiscard]] bool contended() const noexcept {
    const std::uint64_t word = memory_.word.load(std::memory_order_relaxed);  // relaxed: a hint
    return state_ == State::reading ? lock_word::holder(word) >= 0 : (word & lock_word::waiters) != 0;
  }

 private:
  using Slot = Atomic<std::uint64_t>;
  enum class State : std::uint8_t {
    idle,
    waiting,   // the slot says what it waits for, or the outcome
    draining,  // named in the word; slots before drained_ do not read, and will not
    alone,
    reading,
  };
  struct Next {
    int writer = -1;  // the writer that is already granted, or else the first to come
    std::uint64_t slot = 0;
    bool readers = false;  // readers wait
    bool others = false;   // other writers wait
  };

  [[nodiscard]] Slot& own() const noexcept { return memory_.slot(self_); }

  // Takes the word of a lock that no rank holds exclusively.
  bool try_alone() noexcept {
    std::uint64_t expected = 0;
    // Acquire: the last holder's writes. Sequentially consistent with the slots that is_drained() reads: either it sees
    // the reader, or the reader sees the word.
    return memory_.word.compare_exchange_strong(expected, named_, std::memory_order_seq_cst);
  }
  LockAnswer request_shared() noexcept {
    // Looks first, so that a rank that will only wait is not mistaken for a reader.
    if (lock_word::holder(memory_.word.load(std::memory_order_relaxed)) >= 0) return wait_for(LockMode::shared);
    if (try_reading()) [[likely]]
      return entered(State::reading);
    const LockAnswer answer = wait_for(LockMode::shared);
    wake_who_drains();
    return answer;
  }
  LockAnswer try_shared() noexcept {
    if (try_reading()) return entered(State::reading);
    own().store(lock_slot::idle, std::memory_order_seq_cst);
    wake_who_drains();
    return LockAnswer::not_held;
  }
  // Reads, unless a rank is named. A draining rank may have mistaken this rank for a reader: the caller wakes it.
  bool try_reading() noexcept {
    own().store(lock_slot::reading, std::memory_order_seq_cst);                  // then the word: see try_alone()
    return lock_word::holder(memory_.word.load(std::memory_order_seq_cst)) < 0;  // acquire, as there
  }
  // Takes a lock that is orphaned: it has no holder, or a dead one. Returns true if no rank waited: this rank is then
  // named, or reads.
  [[gnu::cold]] bool try_orphaned(std::uint64_t word, LockMode mode) noexcept {
    if (!take_over(word)) return false;
    const Next next = find_next();
    const bool first = next.writer < 0 && !next.readers;
    if (first && mode == LockMode::exclusive) {
      // the word still names this rank, as in try_alone()
      memory_.word.fetch_and(~lock_word::passing_on, std::memory_order_seq_cst);
      return true;
    }
    if (first) own().store(lock_slot::reading, std::memory_order_seq_cst);  // the next named rank sees it
    pass_on();
    return first;
  }
  [[gnu::noinline]] LockAnswer wait_for(LockMode mode) noexcept {
    enqueue(mode);
    state_ = State::waiting;
    return step();
  }
  void enqueue(LockMode mode) noexcept {
    const std::uint64_t kind = mode == LockMode::exclusive ? lock_slot::waiting_exclusive : lock_slot::waiting_shared;
    const std::uint64_t ticket = memory_.ticket.fetch_add(1, std::memory_order_relaxed);  // relaxed: only a number
    // Sequentially consistent: it may end an apparent read, before wake_who_drains(). Release: that read ends before.
    own().store(ticket << lock_slot::ticket_shift | kind, std::memory_order_seq_cst);
    // Release: a rank that sees or clears the bit sees the slot. Acquire, through look(): a rank that has left is not
    // named.
    memory_.word.fetch_or(lock_word::waiters, std::memory_order_seq_cst);
  }

  // Checks if the request has been granted. First does the work that no other rank is there to do.
  void look() noexcept {
    if (own().load(std::memory_order_acquire) == lock_slot::reading) {  // acquire: the last holder's writes
      state_ = State::reading;
      return;
    }
    const std::uint64_t word = memory_.word.load(std::memory_order_seq_cst);  // as in try_alone()
    if (is_named(word)) {
      drained_ = 0;
      state_ = State::draining;
    } else if (is_orphaned(word) && take_over(word)) {
      pass_on();
      look();  // this rank may be the next one itself
    }
  }
  [[nodiscard]] bool is_named(std::uint64_t word) const noexcept {
    return (word & ~(lock_word::waiters | lock_word::news)) == named_;
  }
  // Returns true if no live rank holds the lock exclusively or passes it on.
  [[nodiscard]] bool is_orphaned(std::uint64_t word) const noexcept {
    const int holder = lock_word::holder(word);
    return holder < 0 || !neighbours_.alive(holder);
  }
  // Becomes the rank that passes on, in place of no rank or of a dead one. Returns false if another rank was first.
  [[gnu::cold]] bool take_over(std::uint64_t word) noexcept {
    const int dead = lock_word::holder(word);
    std::uint64_t news = word & lock_word::news;
    // A rank that was passing on had left, and a rank whose slot is still granted had not entered: then there is no
    // news. Relaxed: alive() has acquired the slot. If another rank has cleared it since, it has changed the word, too.
    if (dead >= 0 && (word & lock_word::passing_on) == 0 &&
        memory_.slot(dead).load(std::memory_order_relaxed) != lock_slot::granted) {
      news = lock_word::news;
    }
    // Acquire: everything the dead rank left. Clears waiters before the slots are looked at.
    return memory_.word.compare_exchange_strong(word, named_ | lock_word::passing_on | news, std::memory_order_seq_cst);
  }

  // Gives the lock to the next ranks, or to no rank. The word says that this rank passes on, so no other rank does.
  [[gnu::noinline]] void pass_on() noexcept {
    do {
      for (Next next = find_next(); next.writer >= 0 || next.readers; next = find_next()) {
        if (next.readers && grant_readers(next)) next.others = true;
        if (next.writer >= 0 && grant(next) && !is_orphaned_by(next.writer)) return;
      }
    } while (!free());
  }
  // Returns true if the writer is granted the lock. If not, it has withdrawn its request.
  bool grant(Next& next) noexcept {
    // The slot first, which decides between the two ranks. Then the word, which hands over the protected data.
    if (next.slot != lock_slot::granted &&
        !memory_.slot(next.writer).compare_exchange_strong(next.slot, lock_slot::granted, std::memory_order_relaxed)) {
      return false;
    }
    name(next.writer, next.others);
    return true;
  }
  // If the writer's death was known before it was named, the waiting ranks have looked, found nothing, and sleep. No
  // other rank would pass on in its place.
  bool is_orphaned_by(int writer) noexcept {
    if (writer == self_ || neighbours_.alive(writer)) [[likely]]
      return false;
    const std::uint64_t word = memory_.word.load(std::memory_order_relaxed);
    return lock_word::holder(word) == writer && take_over(word);
  }
  // Reads all slots. A waiter that is not seen here came with others, or will set the bit.
  [[nodiscard]] Next find_next() noexcept {
    Next next;
    for (int rank = 0; rank < ranks_; ++rank) {
      // Relaxed: a rank that waited when the bit was cleared is seen, because clearing acquired the writes before the
      // bit.
      const std::uint64_t slot = memory_.slot(rank).load(std::memory_order_relaxed);
      if ((slot & (lock_slot::waiting | lock_slot::granted)) == 0 || !is_alive_or_clear(rank)) continue;
      // granted by a rank that died before it named this one
      if (slot == lock_slot::granted) return {rank, slot, false, true};
      if ((slot & lock_slot::waiting_shared) != 0) {
        next.readers = true;
      } else if (next.writer < 0 || slot < next.slot) {
        next.others = next.writer >= 0;
        next.writer = rank;
        next.slot = slot;
      } else {
        next.others = true;
      }
    }
    return next;
  }
  // Grants the lock to all readers that came before the writer. Returns true if some readers are left.
  bool grant_readers(const Next& next) noexcept {
    bool left = false;
    for (int rank = 0; rank < ranks_; ++rank) {
      std::uint64_t slot = memory_.slot(rank).load(std::memory_order_relaxed);
      if ((slot & lock_slot::waiting_shared) == 0) continue;
      if (next.writer >= 0 && slot >> lock_slot::ticket_shift > next.slot >> lock_slot::ticket_shift) {
        left = true;
      } else if (memory_.slot(rank).compare_exchange_strong(slot, lock_slot::reading, std::memory_order_seq_cst)) {
        wake(rank);  // release, above: the last holder's writes
      }
    }
    return left;
  }
  // Names the rank whose slot is granted. No other rank takes the word from a live rank that passes on.
  void name(int rank, bool others) noexcept {
    const std::uint64_t word = lock_word::of(rank) | (others ? lock_word::waiters : 0);
    std::uint64_t seen = memory_.word.load(std::memory_order_relaxed);
    // Release: the last holder's writes. Sequentially consistent, for readers that leave: see unlock().
    while (!memory_.word.compare_exchange_weak(seen, word | (seen & (lock_word::waiters | lock_word::news)),
                                               std::memory_order_seq_cst)) {
    }
    wake(rank);
  }
  // Frees the lock, unless a rank has come to wait. Release: the last holder's writes.
  bool free() noexcept {
    std::uint64_t seen = memory_.word.load(std::memory_order_relaxed);
    while ((seen & lock_word::waiters) == 0) {
      if (memory_.word.compare_exchange_weak(seen, seen & lock_word::news, std::memory_order_release)) return true;
    }
    memory_.word.fetch_and(~lock_word::waiters, std::memory_order_acquire);  // acquire: then look at the waiters' slots
    return false;
  }

  // Returns true if no live rank reads. Continues where it stopped. While this rank is named, no other rank begins to
  // read: a rank that seems to will see the word and wait.
  [[nodiscard]] bool is_drained() noexcept {
    for (; drained_ < ranks_; ++drained_) {
      while (drained_ + lock_slot::per_line <= ranks_ && !reads_in_line(drained_)) drained_ += lock_slot::per_line;
      // Sequentially consistent: see try_alone(). Acquire: the readers' reads come before this rank's writes.
      if (drained_ < ranks_ && memory_.slot(drained_).load(std::memory_order_seq_cst) == lock_slot::reading &&
          is_alive_or_clear(drained_)) {
        return false;
      }
    }
    return true;
  }
  // Returns true if a rank of this cache line of slots reads. Has no branch per slot: with 256 ranks this dominates the
  // cost of a lock.
  [[nodiscard]] bool reads_in_line(int first) const noexcept {
    std::uint64_t all = 0;
    for (int rank = first; rank < first + lock_slot::per_line; ++rank) {
      all |= memory_.slot(rank).load(std::memory_order_seq_cst);  // as in is_drained()
    }
    return (all & lock_slot::reading) != 0;
  }
  LockAnswer entered(State state) noexcept {
    state_ = state;
    // Relaxed: the news was there before this rank was granted or named. Only the rank that clears it is told.
    if ((memory_.word.load(std::memory_order_relaxed) & lock_word::news) == 0) [[likely]]
      return LockAnswer::held;
    const std::uint64_t seen = memory_.word.fetch_and(~lock_word::news, std::memory_order_relaxed);
    return (seen & lock_word::news) != 0 ? LockAnswer::held_after_death : LockAnswer::held;
  }

  // Gives up the lock, or the part of it that it has while draining.
  void leave_alone() noexcept {
    std::uint64_t seen = named_;
    if (state_ == State::alone && memory_.word.compare_exchange_strong(seen, 0, std::memory_order_release)) [[likely]] {
      state_ = State::idle;  // release, above: the holder's writes
      return;
    }
    begin_passing();
    pass_on();
  }
  void begin_passing() noexcept {
    std::uint64_t seen = memory_.word.load(std::memory_order_relaxed);
    // Acquire: a waiter wrote its slot before the waiters bit, which is cleared here. Release: to a rank that takes
    // over.
    while (!memory_.word.compare_exchange_weak(seen, named_ | lock_word::passing_on | (seen & lock_word::news),
                                               std::memory_order_seq_cst)) {
    }
    // relaxed: read by the rank that has the word
    if (state_ == State::draining) own().store(lock_slot::idle, std::memory_order_relaxed);
    state_ = State::idle;
  }

  // Called after this rank's slot has ceased to read. Sequentially consistent: a rank that is named later sees the
  // slot.
  void wake_who_drains() noexcept {
    const std::uint64_t word = memory_.word.load(std::memory_order_seq_cst);
    if (lock_word::holder(word) >= 0 && (word & lock_word::passing_on) == 0) wake(lock_word::holder(word));
  }
  void wake(int rank) noexcept {
    if (rank != self_) neighbours_.wake(rank);
  }
  // Clears the slots of dead ranks, so that they are not checked again.
  bool is_alive_or_clear(int rank) noexcept {
    if (rank == self_ || neighbours_.alive(rank)) return true;
    // release: the dead reader's data may be overwritten
    memory_.slot(rank).store(lock_slot::idle, std::memory_order_release);
    return false;
  }

  Memory& memory_;
  int ranks_;
  int self_;
  std::uint64_t named_ = lock_word::of(self_);
  [[no_unique_address]] Neighbours neighbours_;
  int drained_ = 0;
  State state_ = State::idle;
};

}  // namespace tonari::window
