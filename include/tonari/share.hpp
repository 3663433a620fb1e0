#pragma once

#include <tonari/job.hpp>
#include <tonari/status.hpp>
#include <tonari/window.hpp>

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

// Memory that all ranks of a job share, on any number of hosts: ordinary loads and stores, and synchronisation that
// orders them. Fagus and MLC-1 (Sudoh et al.); docs/modules/share.md has the drawings.
//
// Consistency:  as between threads. A data race is a pair of conflicting accesses, by different ranks or threads,
//               that no barrier, mutex, flag or counter of this header orders. A program without data races behaves
//               as if all ranks ran on one processor in turn. The unit is a byte: ranks may write neighbouring bytes
//               at once.
// Hosts:        if all ranks are on one host, all map the same memory, and sharing costs nothing. Ranks on several
//               hosts have copies of the pages that they use (release consistency, several writers per page). So do
//               ranks of one host with TONARI_APART=memory or network. Atomic instructions (std::atomic_ref) act on the
//               rank's copy, and order nothing between hosts: use a counter, or a window.
// Fork:         a forked child does not have the memory.
// Alignment:    arrays start on a page.
// Progress:     a rank's service thread serves the pages and write notices of other ranks while the rank computes.
// System calls: work on shared memory. For users to whom the kernel does not report faults in system calls, the calls
//               of libc work if `tonari run` started the program (docs/modules/share.md, "System calls"). Otherwise
//               they fail with EFAULT on pages that the program has not touched.
// Threads:      any thread of a rank may load, store and synchronise. Collective calls are made by one thread at a
//               time, in the same order in all ranks.
// Deaths:       the death of a rank ends the job, unless Job::on_death is used. Then synchronisation returns
//               peer_gone, and touching a page that only the dead rank had raises SIGBUS.
namespace tonari {

/// The homes of an array's pages. A page's home is the rank that always has it, and that other ranks ask for copies.
enum class Placement : std::uint8_t {
  block,        ///< One part per rank, of equal sizes, in the order of ranks.
  cyclic,       ///< ArrayOptions::cyclic_bytes on each rank in turn.
  first_touch,  ///< The first rank that uses a page.
  by_function,  ///< The rank that ArrayOptions::home returns.
};

/// The same in all ranks.
struct ArrayOptions {
  Placement placement = Placement::block;
  std::uint64_t cyclic_bytes = 64 * 1024;  ///< Rounded up to whole pages. Not 0.
  /// Returns the home of the page that starts at this byte. Called during creation only, for every page.
  std::function<JobRank(std::uint64_t offset)> home{};
  /// Pages move to a rank that alone writes them. Without effect in jobs of more than 64 ranks, and if
  /// writes_are_named.
  bool homes_move = true;
  /// The program names all that it writes, by wrote(), before any thread of its rank synchronises. Then tonari need
  /// not detect writes, nor keep a copy to compare with. Writes that the program does not name are lost.
  bool writes_are_named = false;
  /// A release sends changes to the ranks that have copies, instead of invalidating the copies: for data that the
  /// same ranks read again and again. A home's own writes are sent only if writes_are_named; otherwise
  /// they invalidate the copies.
  bool updates = false;
};

namespace detail {

/// A stretch of shared memory. Created and destroyed collectively.
class Memory {
 public:
  Memory(Memory&&) = delete;
  virtual ~Memory() = default;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// The first home of the page with this byte. An offset beyond the end is misuse, which builds with assertions
  /// report.
  [[nodiscard]] virtual JobRank home_of(std::uint64_t offset) const noexcept = 0;
  virtual void wrote(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;
  virtual void prefetch(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;
  virtual Status barrier_with_multicast(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;

 protected:
  explicit Memory(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}

 private:
  std::span<std::byte> bytes_;
};

/// Collective. Throws SetupError: no addresses, no memory, a missing kernel feature, ranks that disagree.
std::shared_ptr<Memory> make_memory(Job& job, std::uint64_t bytes, const ArrayOptions& options);

}  // namespace detail

namespace share {

/// Collective. All ranks see after it what any rank wrote before it. Returns:
///   ok         all ranks have called it.
///   peer_gone  a rank died or has left.
///   no_memory  this was the first use of shared memory, and it could not be set up; the log has the reason.
Status barrier(Job& job) noexcept;

/// The behaviour of the other ranks when this rank releases its writes.
enum class Others : std::uint8_t {
  may_compute,  ///< They may compute: they are interrupted to handle the write notices.
  will_come,    ///< They call a barrier next, or another call that waits for all: a rank that does not within 100 us is
                ///< interrupted then.
};
/// For synchronisation by other means, such as messages: makes this rank's writes available to ranks that acquire
/// later. Returns ok; peer_gone: a rank died that had to receive them.
Status release(Job& job, Others others = Others::may_compute) noexcept;
/// The other end: this rank sees the writes that other ranks have released. Returns ok; peer_gone.
Status acquire(Job& job) noexcept;

class SyncSlot;

/// A lock over all ranks and threads of the job, for one writer or any number of readers.
///
///   if (const auto lock = mutex.lock()) {
///     ...  // only this rank is here
///   }
///
/// Not a BasicLockable: std::lock_guard would ignore that locking can fail, and does not compile. Every call that locks
/// returns a mutex::Lock, which holds the mutex while it lives and must be tested.
///
/// Creation: a mutex, a flag and a counter are created collectively. Each rank destroys its own object when it no
///           longer needs it, without waiting for other ranks. A job of N ranks may have 4096 N of them at once; one
///           more throws SetupError. After that many have been created, creating one may be a barrier: it reuses the
///           slots of objects that all ranks have destroyed. Each has a home, the rank that manages it: the ranks in
///           turn.
/// Misuse:   builds with assertions end the program, with a line that names the mistake, when a mutex is destroyed
///           while this rank holds it, when a flag is set to a smaller value, and when a moved-from object is used.
/// Threads:  any. A lock belongs to the rank: any of its threads may release it, and threads of one rank exclude each
///           other as ranks do. A thread must not lock a mutex that it has locked already.
class mutex {
 public:
  class Lock;

  explicit mutex(Job& job);
  mutex(mutex&&) noexcept;
  ~mutex();

  /// Waits until this thread alone has the mutex. Status of the lock:
  ///   ok           locked.
  ///   holder_died  locked, but the previous holder died, or a rank died that had data written under this mutex: the
  ///                data may be half written.
  ///   peer_gone    not locked: the rank that manages the mutex died.
  Lock lock() noexcept;
  /// The same without waiting. Status of the lock: as lock(), or
  ///   again        not locked: another thread has it. Between hosts also for a moment after its release.
  Lock try_lock() noexcept;
  /// For readers, which hold the mutex together. Statuses as of lock().
  Lock lock_shared() noexcept;
  /// For readers, without waiting. Statuses as of try_lock().
  Lock try_lock_shared() noexcept;

 private:
  std::unique_ptr<SyncSlot> slot_;
};

/// Holds a mutex while it lives. Test it before touching the data: it holds nothing if locking failed. Only a lock that
/// has a name can be tested: `if (mutex.lock())` would unlock before the block begins. Move-only. Must not outlive the
/// mutex. Threads: one at a time.
class [[nodiscard]] mutex::Lock {
 public:
  Lock(Lock&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)), status_(other.status_) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() { (void)release(); }

  /// How locking went: see mutex::lock() and mutex::try_lock().
  [[nodiscard]] Status status() const& noexcept { return status_; }
  Status status() const&& = delete;  // without a name it is released at once: auto lock = mutex.lock();
  /// True while it holds the mutex: locking returned ok or holder_died, and nothing has released it.
  explicit operator bool() const& noexcept { return slot_ != nullptr; }
  explicit operator bool() const&& = delete;  // without a name it is released at once: auto lock = mutex.lock();
  /// Unlocks before the end of its life. Returns:
  ///   ok         other ranks see what was written, once they lock the mutex; also if it holds nothing.
  ///   peer_gone  a rank died: what was written may be lost.
  Status release() noexcept { return slot_ != nullptr ? unlock(*std::exchange(slot_, nullptr)) : Status::ok; }

 private:
  friend class mutex;
  Lock(SyncSlot& slot, Status status) noexcept
      : slot_(status == Status::ok || status == Status::holder_died ? &slot : nullptr), status_(status) {}
  static Status unlock(SyncSlot& slot) noexcept;

  SyncSlot* slot_;  // null: not held
  Status status_;
};

/// A number that only grows, and for which other ranks can wait. A rank that has seen a value sees everything that
/// was written before the value was set. Starts at 0; created as a mutex is.
class flag {
 public:
  explicit flag(Job& job);
  flag(flag&&) noexcept;
  ~flag();

  /// Sets the value, which must not be smaller than before. One thread of all ranks at a time. Returns ok; peer_gone:
  /// the home died, or a rank died that had to receive this rank's writes.
  Status set(std::uint64_t value) noexcept;
  /// Returns the present value. Status: ok; peer_gone, as of counter::fetch_add().
  [[nodiscard]] Result<std::uint64_t> get() noexcept;
  /// Waits until the value is at least `value`. Returns ok; peer_gone: a rank of the job died, or all others have
  /// left.
  Status wait(std::uint64_t value) noexcept;

 private:
  std::unique_ptr<SyncSlot> slot_;
};

/// A number to which all ranks may add. Additions are ordered among each other, and with all that was written before
/// them. Starts at 0; created as a mutex is.
class counter {
 public:
  explicit counter(Job& job);
  counter(counter&&) noexcept;
  ~counter();

  /// Adds, and returns the number before. Status:
  ///   ok         added.
  ///   peer_gone  the home died, and there is no number; or another rank died, and writes before the call may be
  ///              lost.
  Result<std::uint64_t> fetch_add(std::uint64_t value) noexcept;
  [[nodiscard]] Result<std::uint64_t> get() noexcept { return fetch_add(0); }

 private:
  std::unique_ptr<SyncSlot> slot_;
};

/// One rank's part of [0, count): parts are as equal as possible, in the order of ranks.
struct Part {
  std::size_t first = 0;
  std::size_t count = 0;
};
constexpr Part part_of(std::size_t count, JobRank rank, int ranks) noexcept {
  const std::size_t position = rank.index();
  const auto parts = static_cast<std::size_t>(ranks);
  const std::size_t each = count / parts;
  const std::size_t larger = count % parts;
  return {position * each + std::min(position, larger), each + (position < larger ? 1 : 0)};
}

/// Collective. Calls body(i) for each i of [0, count) in one rank, as part_of() divides them; then barrier(), whose
/// status it returns. If a body throws, the exception leaves parallel_for in that rank, which skips the barrier. The
/// other ranks wait in the barrier until that rank calls barrier() itself, or counts as dead because the exception
/// destroys its Job.
template <std::invocable<std::size_t> Body>
Status parallel_for(Job& job, std::size_t count, Body body) {
  const Part part = part_of(count, job.rank(), job.size());
  for (std::size_t i = part.first; i < part.first + part.count; ++i) body(i);
  return barrier(job);
}

}  // namespace share

/// An array of T that all ranks share, at the same address in each (except ranks that are threads of one process).
/// Zero at first.
///
/// Creation: and destruction are collective. A copy of the object is the same array, which is destroyed with the last
///           one. No rank may use the array once the first rank destroys it. If an exception destroys it in one rank
///           only, then on several hosts touching pages of that home raises SIGBUS in other ranks, and releasing
///           writes to them returns peer_gone.
/// Errors:   creation throws SetupError in all ranks: out of addresses (TONARI_SHARE_BYTES), out of memory, ranks
///           that ask for different arrays or have created different mutexes, flags and counters before, a missing
///           right or kernel feature. A home that runs out of memory later ends the job with a message.
template <class T>
class shared_array {
  static_assert(std::is_trivially_copyable_v<T>, "shared memory carries bytes: T must be trivially copyable");

 public:
  shared_array(Job& job, std::size_t count, const ArrayOptions& options = {})
      : job_(&job), count_(count), memory_(detail::make_memory(job, bytes_of(count), options)) {}

  [[nodiscard]] T* data() const noexcept { return reinterpret_cast<T*>(memory().bytes().data()); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] T& operator[](std::size_t index) const noexcept { return data()[index]; }
  [[nodiscard]] T* begin() const noexcept { return data(); }
  [[nodiscard]] T* end() const noexcept { return data() + count_; }
  [[nodiscard]] std::span<T> span() const noexcept { return {data(), count_}; }

  /// The first home of an element (of its first byte). With first_touch it is the rank that assigns the home to the
  /// rank that touches the page first.
  [[nodiscard]] JobRank home_of(std::size_t index) const noexcept { return memory().home_of(bytes_of(index)); }
  /// Names elements that this rank has written since it last synchronised: see ArrayOptions::writes_are_named.
  /// Without that option it does nothing. Elements beyond the end are misuse, which builds with assertions report.
  void wrote(std::size_t first, std::size_t count) const noexcept { memory().wrote(bytes_of(first), bytes_of(count)); }
  /// Fetches elements that this rank will read, all at once, and returns when they are here.
  void prefetch(std::size_t first, std::size_t count) const noexcept {
    memory().prefetch(bytes_of(first), bytes_of(count));
  }
  /// Collective. Does the same as share::barrier(), and gives all ranks copies of the elements that each rank names
  /// here: for data that every rank reads next. The elements travel down trees, directly into place, which saves a
  /// notice and a fault per page and reader. Each rank names neighbouring elements, possibly none, that no other rank
  /// has written since the last barrier. Meanwhile no thread uses the array. MLC-1's barrier_with_multicast (Sudoh et
  /// al.). Returns:
  ///   ok         done.
  ///   bounds     the elements are not in the array; the other ranks have passed a barrier.
  ///   peer_gone  a rank died or has left.
  ///   no_memory  the system refused memory.
  /// After any other status than ok, the named elements may be lost.
  Status barrier_with_multicast(std::size_t first, std::size_t count) const noexcept {
    constexpr std::uint64_t nowhere = ~std::uint64_t{0};
    const bool is_in = first <= count_ && count <= count_ - first;
    return memory().barrier_with_multicast(is_in ? first * sizeof(T) : nowhere, is_in ? count * sizeof(T) : nowhere);
  }
  /// Calls body(index, element) for each element whose first home (home_of) is this rank, in order. Homes that have
  /// moved, and first touches, do not count. Not collective. An exception of a body leaves the call.
  template <std::invocable<std::size_t, T&> Body>
  void for_each_own(Body body) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (home_of(i) == job_->rank()) body(i, data()[i]);
    }
  }

 private:
  [[nodiscard]] detail::Memory& memory() const noexcept {
    assert(memory_ != nullptr && "a shared_array is used that was moved from");
    return *memory_;
  }
  static std::uint64_t bytes_of(std::size_t count) noexcept {
    constexpr std::uint64_t too_many = ~std::uint64_t{0};  // which is refused
    return count > too_many / sizeof(T) ? too_many : count * sizeof(T);
  }

  Job* job_;
  std::size_t count_;
  std::shared_ptr<detail::Memory> memory_;
};

}  // namespace tonari
