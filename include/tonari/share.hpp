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

// Memory that all ranks of a job share, on whatever hosts they are: ordinary loads and stores, and synchronisation that
// makes them meet. Fagus and MLC-1 (Sudoh et al.); docs/modules/share.md has the drawings.
//
// Consistency: as between threads. A program without data races (conflicting accesses by different ranks or threads
//              that no barrier, mutex, flag or counter of this header orders) sees what it would see if all ran on one
//              processor, in turn. Bytes are the unit: ranks may write neighbouring bytes at once.
// Hosts:       where all ranks are on one host, shared memory is mapped in all of them, and costs nothing. Ranks on
//              several hosts have copies of what they use (release consistency, several writers of a page); so have,
//              with TONARI_APART=memory or network, ranks of one host.
// Calls:       of the system work on shared memory; for users to whom the kernel does not tell faults in them, those of
//              libc, where `tonari run` has started the program: docs/modules/share.md, "System calls". Else they fail
//              with EFAULT until the program has touched what they use.
// Threads:     any thread of a rank may load, store and synchronise; "collective" calls are made by one at a time, in
//              the same order in all ranks.
// Death:       of a rank ends the job, unless Job::on_death is used: then synchronisation answers peer_gone, and
//              touching what only the dead had raises SIGBUS.
namespace tonari {

/// Where the parts of an array have their home: the rank that always has them, and that others ask for copies.
enum class Placement : std::uint8_t {
  block,        ///< One part a rank, of equal sizes, in the order of ranks.
  cyclic,       ///< ArrayOptions::cyclic_bytes at each rank in turn.
  first_touch,  ///< At whichever rank is the first to use a page.
  by_function,  ///< As ArrayOptions::home says.
};

/// The same in all ranks.
struct ArrayOptions {
  Placement placement = Placement::block;
  std::uint64_t cyclic_bytes = 64 * 1024;  ///< Rounded up to whole pages. Not 0.
  std::function<JobRank(std::uint64_t offset)>
      home{};  ///< The rank where the page that begins at this byte has its home.
  /// Pages move to the rank that alone writes them. Not of more than 64 ranks.
  bool homes_move = true;
  /// The program names all that it writes, by wrote(), before any thread of its rank synchronises: then no write has to
  /// be noticed, and no copy kept to compare with. What it does not name is lost.
  bool writes_are_named = false;
  /// Who has copies is sent what was changed, when it is released, instead of asking for it at the next fault: for data
  /// that the same ranks read again and again. Of what a home writes itself, only what it names.
  bool updates = false;
};

namespace detail {

/// A stretch of shared memory. Made and destroyed collectively.
class Memory {
 public:
  Memory(Memory&&) = delete;
  virtual ~Memory() = default;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// Where the page with this byte had its home at first. Beyond the end: misuse, which builds with assertions name.
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

/// Collective. What any rank wrote before it, all see after it. Answers ok, or peer_gone: a rank died or has left; or
/// no_memory, where it is the first use of shared memory and that cannot be: the log says why.
Status barrier(Job& job) noexcept;

/// What the other ranks do that hear of a release.
enum class Others : std::uint8_t {
  may_compute,  ///< They are interrupted for it.
  will_come,    ///< They come to a barrier next, or to another call that waits for all: who does not come within 100 us
                ///< is interrupted then.
};
/// For synchronisation by other means, such as messages: what this rank has written is there for whoever acquires
/// later.
Status release(Job& job, Others others = Others::may_compute) noexcept;
/// The other end: this rank sees what others have released.
Status acquire(Job& job) noexcept;

class SyncSlot;  // where a mutex, a flag or a counter lies

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
/// longer
///           needs it, without waiting for other ranks. A job of N ranks may have 4096 N of them at once; one more
///           throws SetupError. After that many have been created, creating one may be a barrier: it reuses the slots
///           of objects that all ranks have destroyed.
/// Misuse:   builds with assertions end the program, with a line that names the mistake, when a mutex is destroyed
/// while
///           this rank holds it, when a flag is set to a smaller value, and when a moved-from object is used.
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
  std::unique_ptr<SyncSlot> place_;
};

/// Holds a mutex while it lives. Test it before touching the data: it holds nothing if locking failed. Move-only.
/// Must not outlive the mutex. Threads: one at a time.
class [[nodiscard]] mutex::Lock {
 public:
  Lock(Lock&& other) noexcept : place_(std::exchange(other.place_, nullptr)), status_(other.status_) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() { (void)release(); }

  /// How locking went: see mutex::lock() and mutex::try_lock().
  [[nodiscard]] Status status() const noexcept { return status_; }
  /// True while it holds the mutex: locking returned ok or holder_died, and nothing has released it.
  explicit operator bool() const noexcept { return place_ != nullptr; }
  /// Unlocks before the end of its life. Returns:
  ///   ok         other ranks see what was written, once they lock the mutex; also if it holds nothing.
  ///   peer_gone  a rank died: what was written may be lost.
  Status release() noexcept { return place_ != nullptr ? unlock(*std::exchange(place_, nullptr)) : Status::ok; }

 private:
  friend class mutex;
  Lock(SyncSlot& place, Status status) noexcept
      : place_(status == Status::ok || status == Status::holder_died ? &place : nullptr), status_(status) {}
  static Status unlock(SyncSlot& place) noexcept;

  SyncSlot* place_;  // null: not held
  Status status_;
};

/// A number that only grows, and that others wait for: whoever has seen it, sees what was written before it was set.
/// Starts at 0; made as a mutex is.
class flag {
 public:
  explicit flag(Job& job);
  flag(flag&&) noexcept;
  ~flag();

  /// By one thread at a time. To what it was at least.
  Status set(std::uint64_t value) noexcept;
  /// `before`: what it is now. Answers ok; or peer_gone, as counter::fetch_add().
  [[nodiscard]] Result<std::uint64_t> get() noexcept;
  /// Returns once it is at least `value`; or peer_gone when a rank of the job has died, or all others have left it.
  Status wait(std::uint64_t value) noexcept;

 private:
  std::unique_ptr<SyncSlot> place_;
};

/// A number that all may add to; each addition is ordered among all of them, and with what was written before.
/// Starts at 0; made as a mutex is.
class counter {
 public:
  explicit counter(Job& job);
  counter(counter&&) noexcept;
  ~counter();

  /// Answers what it was before, and ok; or peer_gone: its home has died, and there is no number, or another rank has,
  /// and what was written before may be lost.
  Result<std::uint64_t> fetch_add(std::uint64_t value) noexcept;
  [[nodiscard]] Result<std::uint64_t> get() noexcept { return fetch_add(0); }

 private:
  std::unique_ptr<SyncSlot> place_;
};

/// The part of [0, count) that is a rank's: parts are as equal as can be, in the order of ranks.
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

/// Collective: body(i) for each i of [0, count), each in one rank, as part_of has it; then barrier().
template <std::invocable<std::size_t> Body>
Status parallel_for(Job& job, std::size_t count, Body body) {
  const Part part = part_of(count, job.rank(), job.size());
  for (std::size_t i = part.first; i < part.first + part.count; ++i) body(i);
  return barrier(job);
}

}  // namespace share

/// An array of T that all ranks share, at the same address in each (but for ranks that are threads of one process).
/// Zero at first. Made and destroyed collectively: nobody may use it once the first destroys it. Who does since an
/// exception has destroyed it elsewhere gets SIGBUS where that rank was the home, on several hosts, and from a release
/// of what was written there peer_gone.
///
/// Errors: making it throws SetupError in all ranks: out of addresses (TONARI_SHARE_BYTES), out of memory, ranks that
///         ask for different arrays or have made different mutexes, flags and counters before, a missing right or
///         kernel feature. A home that has no memory left while the program runs ends the job with a message.
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

  /// The rank at which an element (its first byte) had its home at first.
  [[nodiscard]] JobRank home_of(std::size_t index) const noexcept { return memory().home_of(bytes_of(index)); }
  /// Names what this rank has written since it last synchronised: see ArrayOptions::writes_are_named. Elsewhere it does
  /// nothing. Beyond the end: misuse, which builds with assertions name.
  void wrote(std::size_t first, std::size_t count) const noexcept { memory().wrote(bytes_of(first), bytes_of(count)); }
  /// Brings what this rank will read, all at once, and returns when it is here.
  void prefetch(std::size_t first, std::size_t count) const noexcept {
    memory().prefetch(bytes_of(first), bytes_of(count));
  }
  /// Collective. As share::barrier(), and all ranks have copies of what each names here: for data that everyone reads
  /// next. They are sent straight to their places, down trees, in place of a notice and a fault a page and reader. Each
  /// rank names neighbours, of any number, none too, that no other has written since the last barrier. While it
  /// lasts no thread uses the array. Answers ok; bounds: what this rank named is not in the array, and the others have
  /// passed a barrier; peer_gone; no_memory. After all but ok what was named may be lost.
  ///
  /// MLC-1's barrier_with_multicast (Sudoh et al.).
  Status barrier_with_multicast(std::size_t first, std::size_t count) const noexcept {
    constexpr std::uint64_t nowhere = ~std::uint64_t{0};
    const bool is_in = first <= count_ && count <= count_ - first;
    return memory().barrier_with_multicast(is_in ? first * sizeof(T) : nowhere, is_in ? count * sizeof(T) : nowhere);
  }
  /// body(index, element) for each element that has its home here, in order. Not collective.
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
