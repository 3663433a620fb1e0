#pragma once

#include "base/cache.hpp"
#include "window/lock_memory.hpp"

#include <tonari/window.hpp>

#include <atomic>
#include <cassert>
#include <concepts>
#include <cstdint>

namespace tonari::window {

/// What a lock must know of the other ranks, and do to them.
template <class T>
concept LockNeighbours = requires(const T& neighbours, int rank) {
  // False: it will never execute another instruction, and what it wrote is seen (acquire). False for ever.
  { neighbours.alive(rank) }
  noexcept->std::same_as<bool>;
  // Has a rank that sleeps look at ready() again. Called after the (sequentially consistent) change it is to see. Who
  // goes to sleep says so (sequentially consistent), looks at ready() once more, and only then sleeps; and all ranks
  // look again when a death is known.
  { neighbours.wake(rank) }
  noexcept;
};

enum class [[nodiscard]] LockAnswer : std::uint8_t{
    not_held, held,
    held_after_death,  ///< A rank died while it had the lock alone: what the lock protects may be half written.
};

/// One rank's way to a lock in shared memory: one request at a time, moved on by calls that never wait.
///
/// Threads: one after the other, ordered by the caller.
/// Costs:   no system call, no allocation. Alone, an exclusive lock and unlock are two read-modify-writes and a look at
///          all slots, shared ones are two exchanges of this rank's slot.
/// Order:   first come, first served, by tickets. A death is told once, to the next who gets the lock. It is told
///          needlessly if the holder was about to enter, or its work was done and it was about to leave.
template <LockNeighbours Neighbours, template <class> class Atomic = std::atomic>
class LockSide {
 public:
  using Memory = BasicLockMemory<Atomic>;

  LockSide(Memory& memory, int ranks, int self, Neighbours neighbours) noexcept
      : memory_(memory), ranks_(ranks), self_(self), neighbours_(neighbours) {}

  /// Begins to lock, and has locked if nobody is in the way. If not_held, call step() until it is.
  LockAnswer request(LockMode mode) noexcept {
    assert(state_ == State::idle);
    if (mode == LockMode::shared) return request_shared();
    std::uint64_t expected = 0;
    // Acquire: what the last holder wrote. Sequentially consistent with the slots that drain() looks at: it sees the
    // reader, or the reader sees it.
    if (!memory_.word.compare_exchange_strong(expected, named_, std::memory_order_seq_cst)) [[unlikely]] {
      return wait_for(LockMode::exclusive);
    }
    drained_ = 0;
    if (is_drained()) [[likely]] {
      state_ = State::alone;
      return LockAnswer::held;
    }
    own().store(lock_slot::granted, std::memory_order_relaxed);  // read only by others if this rank dies
    state_ = State::draining;
    return LockAnswer::not_held;
  }

  /// Moves a request on.
  LockAnswer step() noexcept {
    if (state_ == State::waiting) {
      const std::uint64_t slot = look();
      if (slot == lock_slot::reading) return entered(State::reading);
      if (slot != lock_slot::granted) return LockAnswer::not_held;
      name_self();
      drained_ = 0;
      state_ = State::draining;
    }
    assert(state_ == State::draining);
    return drain();
  }

  /// True when step() would change something. For a last look before sleep, and now and then while spinning.
  [[nodiscard]] bool ready() const noexcept {
    return called() || (state_ == State::waiting ? is_orphaned(memory_.word.load(std::memory_order_seq_cst))
                                                 : !neighbours_.alive(drained_));
  }
  /// The part of ready() that needs nobody's death. For spinning: touches only the slot that will change.
  [[nodiscard]] bool called() const noexcept {
    if (state_ == State::waiting) return (own().load(std::memory_order_seq_cst) & lock_slot::waiting) == 0;
    return memory_.slot(drained_).load(std::memory_order_seq_cst) != lock_slot::reading;
  }

  /// Takes the request back: not_held. But who has the lock by now keeps it, and is told so.
  LockAnswer abandon() noexcept {
    if (state_ == State::waiting) {
      std::uint64_t slot = own().load(std::memory_order_relaxed);
      // Either this rank or who passes on to it changes the slot. Acquire: of what is granted.
      if ((slot & lock_slot::waiting) != 0 &&
          own().compare_exchange_strong(slot, lock_slot::idle, std::memory_order_acq_rel)) {
        state_ = State::idle;
        return LockAnswer::not_held;
      }
    }
    const LockAnswer answer = step();
    if (answer == LockAnswer::not_held) leave_alone();  // it waits for readers only
    return answer;
  }

  /// Locks at once or not at all. May fail though nobody has the lock, when two try at the same moment.
  LockAnswer try_lock(LockMode mode) noexcept {
    assert(state_ == State::idle);
    // Looks first, so that nobody who has the lock is disturbed by one who tries again and again.
    if (!is_orphaned(memory_.word.load(std::memory_order_relaxed))) return LockAnswer::not_held;
    drained_ = 0;
    if (mode == LockMode::exclusive && !is_drained()) return LockAnswer::not_held;
    const LockAnswer answer = request(mode);
    return answer == LockAnswer::not_held ? abandon() : answer;
  }

  void unlock() noexcept {
    assert(state_ == State::alone || state_ == State::reading);
    if (state_ == State::alone) return leave_alone();
    state_ = State::idle;
    // Release: what was read may be written from now on. Sequentially consistent with the word: who drains sees that
    // this rank has left, or it is seen here and woken.
    own().store(lock_slot::idle, std::memory_order_seq_cst);
    wake_who_drains(memory_.word.load(std::memory_order_seq_cst));
  }

  /// True if another rank waits for this one, as far as is known: it may have given up.
  [[nodiscard]] bool contended() const noexcept {
    const std::uint64_t word = memory_.word.load(std::memory_order_relaxed);  // a hint
    return state_ == State::reading ? lock_word::holder(word) >= 0 : (word & lock_word::waiters) != 0;
  }

 private:
  using Slot = Atomic<std::uint64_t>;
  enum class State : std::uint8_t {
    idle,
    waiting,   // the slot says for what, or what has come of it
    draining,  // named in the word; slots before drained_ do not read, nor will
    alone,
    reading,
  };
  struct Next {
    int writer = -1;  // the one that is granted already, otherwise the first to come
    std::uint64_t slot = 0;
    bool readers = false;  // wait
    bool others = false;   // other writers wait
  };

  [[nodiscard]] Slot& own() const noexcept { return memory_.slot(self_); }

  LockAnswer request_shared() noexcept {
    // Looks first: who only waits should not be taken for a reader.
    if (lock_word::holder(memory_.word.load(std::memory_order_relaxed)) >= 0) return wait_for(LockMode::shared);
    own().store(lock_slot::reading, std::memory_order_seq_cst);  // then the word: see request()
    if (lock_word::holder(memory_.word.load(std::memory_order_seq_cst)) < 0) [[likely]] {
      return entered(State::reading);  // acquire: what the last holder wrote
    }
    const LockAnswer answer = wait_for(LockMode::shared);
    // Who drains may have seen a reader and sleep. One who is named only later sees that there is none.
    wake_who_drains(memory_.word.load(std::memory_order_seq_cst));
    return answer;
  }
  [[gnu::noinline]] LockAnswer wait_for(LockMode mode) noexcept {
    enqueue(mode);
    state_ = State::waiting;
    return step();
  }
  void enqueue(LockMode mode) noexcept {
    const std::uint64_t kind = mode == LockMode::exclusive ? lock_slot::waiting_exclusive : lock_slot::waiting_shared;
    const std::uint64_t ticket = memory_.ticket.fetch_add(1, std::memory_order_relaxed);  // only a number
    // Sequentially consistent: may end what looked like reading, before wake_who_drains(). Release: and did so before.
    own().store(ticket << lock_slot::ticket_shift | kind, std::memory_order_seq_cst);
    // Release: the slot is seen by who sees the bit, or clears it. Acquire, through look(): who has left is not named.
    memory_.word.fetch_or(lock_word::waiters, std::memory_order_seq_cst);
  }

  // This rank's slot, after it has done what nobody else is there to do.
  std::uint64_t look() noexcept {
    const std::uint64_t slot = own().load(std::memory_order_acquire);  // what was written before it was granted
    if ((slot & lock_slot::waiting) == 0) return slot;
    const std::uint64_t word = memory_.word.load(std::memory_order_acquire);
    if (!is_orphaned(word) || !take_over(word)) return slot;
    pass_on();
    return own().load(std::memory_order_relaxed);  // perhaps by itself
  }
  // Nobody alive has the lock alone or passes it on.
  [[nodiscard]] bool is_orphaned(std::uint64_t word) const noexcept {
    const int holder = lock_word::holder(word);
    return holder < 0 || !neighbours_.alive(holder);
  }
  // Becomes the one who passes on, in place of nobody or of a dead rank. False if another was first.
  [[gnu::cold]] bool take_over(std::uint64_t word) noexcept {
    const int dead = lock_word::holder(word);
    std::uint64_t news = word & lock_word::news;
    // One who passed on had left, and one whose slot is still granted had not entered. Relaxed: alive() has acquired
    // it. If it was cleared since by who was first, so was the word changed.
    if (dead >= 0 && (word & lock_word::passing_on) == 0 &&
        memory_.slot(dead).load(std::memory_order_relaxed) != lock_slot::granted) {
      news = lock_word::news;
    }
    // Acquire: all that was left. Leaves out waiters, before the slots are looked at.
    return memory_.word.compare_exchange_strong(word, named_ | lock_word::passing_on | news, std::memory_order_seq_cst);
  }

  // Gives the lock to those who are next, or to nobody. The word says that this rank passes on, so nobody else does.
  [[gnu::noinline]] void pass_on() noexcept {
    do {
      for (Next next = find_next(); next.writer >= 0 || next.readers; next = find_next()) {
        if (next.readers && grant_readers(next)) next.others = true;
        if (next.writer < 0) continue;
        // The slot first: its rank may be taking its request back. Release: to the writer, what was done so far.
        if (next.slot == lock_slot::granted ||
            memory_.slot(next.writer)
                .compare_exchange_strong(next.slot, lock_slot::granted, std::memory_order_seq_cst)) {
          name(next.writer, next.others);
          return;
        }
      }
    } while (!free());
  }
  // What the slots say. None waits who is not seen here, has others, or will set the bit.
  [[nodiscard]] Next find_next() noexcept {
    Next next;
    for (int rank = 0; rank < ranks_; ++rank) {
      // Acquire: to this rank, what readers have seen is not needed; but the bit came after the slot: see enqueue().
      const std::uint64_t slot = memory_.slot(rank).load(std::memory_order_acquire);
      if ((slot & (lock_slot::waiting | lock_slot::granted)) == 0 || !is_alive_or_clear(rank)) continue;
      if (slot == lock_slot::granted) return {rank, slot, false, true};  // by one who died before it was named
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
  // To all that came before the writer. True if some are left.
  bool grant_readers(const Next& next) noexcept {
    bool left = false;
    for (int rank = 0; rank < ranks_; ++rank) {
      std::uint64_t slot = memory_.slot(rank).load(std::memory_order_relaxed);
      if ((slot & lock_slot::waiting_shared) == 0) continue;
      if (next.writer >= 0 && slot >> lock_slot::ticket_shift > next.slot >> lock_slot::ticket_shift) {
        left = true;
      } else if (memory_.slot(rank).compare_exchange_strong(slot, lock_slot::reading, std::memory_order_seq_cst)) {
        wake(rank);  // release, above: what the last holder wrote
      }
    }
    return left;
  }
  // Names whose slot is granted, unless it has done so itself.
  void name(int rank, bool others) noexcept {
    const std::uint64_t word = lock_word::of(rank) | (others ? lock_word::waiters : 0);
    std::uint64_t seen = memory_.word.load(std::memory_order_relaxed);
    // Release: to who takes over from it, should it die. Sequentially consistent: readers leave, see unlock().
    while (is_passing_on(seen) &&
           !memory_.word.compare_exchange_weak(seen, word | (seen & (lock_word::waiters | lock_word::news)),
                                               std::memory_order_seq_cst)) {
    }
    wake(rank);
  }
  // The same, by the one whose slot is granted: who granted it may be dead, or not so far.
  void name_self() noexcept {
    std::uint64_t seen = memory_.word.load(std::memory_order_acquire);
    while ((seen & ~(lock_word::waiters | lock_word::news)) != named_ &&
           !memory_.word.compare_exchange_weak(seen, named_ | lock_word::waiters | (seen & lock_word::news),
                                               std::memory_order_seq_cst)) {  // it does not know who else waits
    }
  }
  [[nodiscard]] bool is_passing_on(std::uint64_t word) const noexcept {
    return (word & ~(lock_word::waiters | lock_word::news)) == (named_ | lock_word::passing_on);
  }
  // Names nobody, unless someone has come to wait. Release: what the last holder wrote.
  bool free() noexcept {
    std::uint64_t seen = memory_.word.load(std::memory_order_relaxed);
    while ((seen & lock_word::waiters) == 0) {
      if (memory_.word.compare_exchange_weak(seen, seen & lock_word::news, std::memory_order_release)) return true;
    }
    memory_.word.fetch_and(~lock_word::waiters, std::memory_order_acquire);  // then look at their slots
    return false;
  }

  LockAnswer drain() noexcept {
    if (!is_drained()) return LockAnswer::not_held;
    own().store(lock_slot::idle, std::memory_order_release);  // before unlock(): who passes on is not granted
    return entered(State::alone);
  }
  // Nobody alive reads. Goes on where it was. While this rank is named, no rank begins to read: one that seems to will
  // see the word.
  [[nodiscard]] bool is_drained() noexcept {
    for (; drained_ < ranks_; ++drained_) {
      // Sequentially consistent: see request(). Acquire: readers are done with what is written now.
      const std::uint64_t slot = memory_.slot(drained_).load(std::memory_order_seq_cst);
      if (slot == lock_slot::reading && is_alive_or_clear(drained_)) [[unlikely]]
        return false;
    }
    return true;
  }
  LockAnswer entered(State state) noexcept {
    state_ = state;
    // Relaxed: it was there before this rank was granted anything, or named. Who takes it away is told.
    if ((memory_.word.load(std::memory_order_relaxed) & lock_word::news) == 0) [[likely]]
      return LockAnswer::held;
    const std::uint64_t seen = memory_.word.fetch_and(~lock_word::news, std::memory_order_relaxed);
    return (seen & lock_word::news) != 0 ? LockAnswer::held_after_death : LockAnswer::held;
  }

  // Gives up the lock, or what there is of it while draining.
  void leave_alone() noexcept {
    std::uint64_t seen = named_;
    if (state_ == State::alone && memory_.word.compare_exchange_strong(seen, 0, std::memory_order_release)) [[likely]] {
      state_ = State::idle;  // release: what was written
      return;
    }
    begin_passing();
    pass_on();
  }
  void begin_passing() noexcept {
    std::uint64_t seen = memory_.word.load(std::memory_order_relaxed);
    // Acquire: who waits wrote its slot before the bit, which is left out. Release: to who takes over.
    while (!memory_.word.compare_exchange_weak(seen, named_ | lock_word::passing_on | (seen & lock_word::news),
                                               std::memory_order_seq_cst)) {
    }
    if (state_ == State::draining) own().store(lock_slot::idle, std::memory_order_release);
    state_ = State::idle;
  }

  void wake_who_drains(std::uint64_t word) noexcept {
    if (lock_word::holder(word) >= 0 && (word & lock_word::passing_on) == 0) wake(lock_word::holder(word));
  }
  void wake(int rank) noexcept {
    if (rank != self_) neighbours_.wake(rank);
  }
  // The slots of the dead are cleared, so that nobody asks again.
  bool is_alive_or_clear(int rank) noexcept {
    if (rank == self_ || neighbours_.alive(rank)) return true;
    memory_.slot(rank).store(lock_slot::idle, std::memory_order_release);  // what it read may be written
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
