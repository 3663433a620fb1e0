#pragma once

#include "window/locks/lock_layout.hpp"

#include <tonari/window.hpp>

#include <atomic>
#include <cassert>
#include <concepts>
#include <cstdint>

namespace tonari::window {

/// What a lock must know of the other ranks, and do to them.
template <class T>
concept LockNeighbours = requires(const T& neighbours, int rank) {
  // False: it will never execute another instruction, and what it wrote is seen (acquire). False for ever, and to all
  // ranks: who asks after another has seen it, sees it.
  { neighbours.alive(rank) }
  noexcept->std::same_as<bool>;
  // Has a rank that sleeps look at ready() again. Called after the (sequentially consistent) change it is to see. Who
  // goes to sleep says so (sequentially consistent), looks at ready() once more, and only then sleeps. When a rank has
  // ceased to be alive, all others look again as if they had been woken.
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
class LockAlgorithm {
 public:
  using Memory = BasicLockMemory<Atomic>;

  LockAlgorithm(Memory& memory, int ranks, int self, Neighbours neighbours) noexcept
      : memory_(memory), ranks_(ranks), self_(self), neighbours_(neighbours) {}

  /// Begins to lock, and has locked if nobody is in the way. If not_held, call step() until it is.
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
    own().store(lock_slot::granted, std::memory_order_relaxed);  // read only by others if this rank dies
    state_ = State::draining;
    return LockAnswer::not_held;
  }

  /// Moves a request on.
  LockAnswer step() noexcept {
    if (state_ == State::waiting) look();
    if (state_ == State::waiting || (state_ == State::draining && !is_drained())) return LockAnswer::not_held;
    // Before unlock(), so that who passes on is not granted. Relaxed: read by others only if this rank dies.
    if (state_ == State::draining) own().store(lock_slot::idle, std::memory_order_relaxed);
    return entered(state_ == State::draining ? State::alone : State::reading);
  }

  /// True when step() would change something. For a last look before sleep, and now and then while spinning.
  [[nodiscard]] bool ready() const noexcept {
    if (state_ == State::draining) return called() || !neighbours_.alive(drained_);
    if (own().load(std::memory_order_seq_cst) == lock_slot::reading) return true;
    const std::uint64_t word = memory_.word.load(std::memory_order_seq_cst);
    return is_named(word) || is_orphaned(word);
  }
  /// What ready() begins with, for spinning: touches only the slot that will change, and overlooks deaths.
  [[nodiscard]] bool called() const noexcept {
    if (state_ == State::waiting) return (own().load(std::memory_order_seq_cst) & lock_slot::waiting) == 0;
    return memory_.slot(drained_).load(std::memory_order_seq_cst) != lock_slot::reading;
  }

  /// Takes the request back. False: too late, it is being granted; call step() until it is held, or this again.
  [[nodiscard]] bool abandon() noexcept {
    if (state_ == State::waiting) {
      std::uint64_t slot = own().load(std::memory_order_relaxed);
      // Either this rank or who passes on changes the slot. Relaxed: says only that nothing is wanted.
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

  /// Locks at once or not at all. May fail though nobody has the lock, when two try at the same moment.
  LockAnswer try_lock(LockMode mode) noexcept {
    assert(state_ == State::idle);
    // Looks first, so that nobody who has the lock is disturbed by one who tries again and again.
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
    // Release: what was read may be written from now on. Sequentially consistent with the word: who drains sees that
    // this rank has left, or it is seen here and woken.
    own().store(lock_slot::idle, std::memory_order_seq_cst);
    wake_who_drains();
  }

  /// For a rank that died, by who moved its requests on: gives back what it has or waits for. If it had the lock alone,
  /// whoever gets it next is told.
  void bury() noexcept {
    while (state_ == State::waiting || state_ == State::draining) {
      if (!abandon()) (void)step();
    }
    if (state_ == State::idle) return;
    if (state_ == State::alone) memory_.word.fetch_or(lock_word::news, std::memory_order_relaxed);  // with what follows
    unlock();
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

  // Takes the word of a lock that nobody has alone.
  bool try_alone() noexcept {
    std::uint64_t expected = 0;
    // Acquire: what the last holder wrote. Sequentially consistent with the slots that is_drained() looks at: it sees
    // the reader, or the reader sees it.
    return memory_.word.compare_exchange_strong(expected, named_, std::memory_order_seq_cst);
  }
  LockAnswer request_shared() noexcept {
    // Looks first: who only waits should not be taken for a reader.
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
  // Reads, unless somebody is named. But to one who drains it may have looked so: it is to be woken when that is over.
  bool try_reading() noexcept {
    own().store(lock_slot::reading, std::memory_order_seq_cst);                  // then the word: see try_alone()
    return lock_word::holder(memory_.word.load(std::memory_order_seq_cst)) < 0;  // acquire, as there
  }
  // Takes the place of nobody, or of one who died, unless somebody waits. This rank is named then, or reads.
  [[gnu::cold]] bool try_orphaned(std::uint64_t word, LockMode mode) noexcept {
    if (!take_over(word)) return false;
    const Next next = find_next();
    const bool first = next.writer < 0 && !next.readers;
    if (first && mode == LockMode::exclusive) {
      memory_.word.fetch_and(~lock_word::passing_on, std::memory_order_seq_cst);  // it stays: as in try_alone()
      return true;
    }
    if (first) own().store(lock_slot::reading, std::memory_order_seq_cst);  // who is named next will see it
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
    const std::uint64_t ticket = memory_.ticket.fetch_add(1, std::memory_order_relaxed);  // only a number
    // Sequentially consistent: may end what looked like reading, before wake_who_drains(). Release: and did so before.
    own().store(ticket << lock_slot::ticket_shift | kind, std::memory_order_seq_cst);
    // Release: the slot is seen by who sees the bit, or clears it. Acquire, through look(): who has left is not named.
    memory_.word.fetch_or(lock_word::waiters, std::memory_order_seq_cst);
  }

  // Whether what this rank waits for is there, after it has done what nobody else is there to do.
  void look() noexcept {
    if (own().load(std::memory_order_acquire) == lock_slot::reading) {  // acquire: what the last holder wrote
      state_ = State::reading;
      return;
    }
    const std::uint64_t word = memory_.word.load(std::memory_order_seq_cst);  // as in try_alone()
    if (is_named(word)) {
      drained_ = 0;
      state_ = State::draining;
    } else if (is_orphaned(word) && take_over(word)) {
      pass_on();
      look();  // it may be next itself
    }
  }
  [[nodiscard]] bool is_named(std::uint64_t word) const noexcept {
    return (word & ~(lock_word::waiters | lock_word::news)) == named_;
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
        if (next.writer >= 0 && grant(next) && !is_orphaned_by(next.writer)) return;
      }
    } while (!free());
  }
  // Whether the writer is granted the lock. If not, it has taken its request back.
  bool grant(Next& next) noexcept {
    // The slot first, which says who of the two was faster. Then the word, which hands over what was written.
    if (next.slot != lock_slot::granted &&
        !memory_.slot(next.writer).compare_exchange_strong(next.slot, lock_slot::granted, std::memory_order_relaxed)) {
      return false;
    }
    name(next.writer, next.others);
    return true;
  }
  // If its death was known before it was named, those who wait have looked, seen nothing, and sleep: nobody else will
  // pass on in its place.
  bool is_orphaned_by(int writer) noexcept {
    if (writer == self_ || neighbours_.alive(writer)) [[likely]]
      return false;
    const std::uint64_t word = memory_.word.load(std::memory_order_relaxed);
    return lock_word::holder(word) == writer && take_over(word);
  }
  // What the slots say. None waits who is not seen here, has others, or will set the bit.
  [[nodiscard]] Next find_next() noexcept {
    Next next;
    for (int rank = 0; rank < ranks_; ++rank) {
      // Relaxed: who waited when the bit was cleared is seen, since that has acquired what was written before the bit.
      const std::uint64_t slot = memory_.slot(rank).load(std::memory_order_relaxed);
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
  // Names the rank whose slot is granted. Nobody else takes the word from one who passes on and lives.
  void name(int rank, bool others) noexcept {
    const std::uint64_t word = lock_word::of(rank) | (others ? lock_word::waiters : 0);
    std::uint64_t seen = memory_.word.load(std::memory_order_relaxed);
    // Release: what the last holder wrote. Sequentially consistent: of readers who leave, see unlock().
    while (!memory_.word.compare_exchange_weak(seen, word | (seen & (lock_word::waiters | lock_word::news)),
                                               std::memory_order_seq_cst)) {
    }
    wake(rank);
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

  // Nobody alive reads. Goes on where it was. While this rank is named, no rank begins to read: one that seems to will
  // see the word.
  [[nodiscard]] bool is_drained() noexcept {
    for (; drained_ < ranks_; ++drained_) {
      while (drained_ + lock_slot::per_line <= ranks_ && !reads_in_line(drained_)) drained_ += lock_slot::per_line;
      // Sequentially consistent: see try_alone(). Acquire: readers are done with what is written now.
      if (drained_ < ranks_ && memory_.slot(drained_).load(std::memory_order_seq_cst) == lock_slot::reading &&
          is_alive_or_clear(drained_)) {
        return false;
      }
    }
    return true;
  }
  // In so many slots from this one on. Without a branch for each: with 256 ranks this is what a lock costs.
  [[nodiscard]] bool reads_in_line(int first) const noexcept {
    std::uint64_t all = 0;
    for (int rank = first; rank < first + lock_slot::per_line; ++rank) {
      all |= memory_.slot(rank).load(std::memory_order_seq_cst);  // as in is_drained()
    }
    return (all & lock_slot::reading) != 0;
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
    if (state_ == State::draining) own().store(lock_slot::idle, std::memory_order_relaxed);  // seen by who has the word
    state_ = State::idle;
  }

  // After this rank's slot has ceased to read. Sequentially consistent: who is named later sees the slot.
  void wake_who_drains() noexcept {
    const std::uint64_t word = memory_.word.load(std::memory_order_seq_cst);
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
