#pragma once

#include <tonari/address.hpp>
#include <tonari/job.hpp>
#include <tonari/rank.hpp>
#include <tonari/result.hpp>
#include <tonari/status.hpp>

#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace tonari {

/// What a rank may do with another's part of a window.
enum class Rights : std::uint8_t { none = 0, read = 1, write = 2, atomic = 4, all = 7 };
constexpr Rights operator|(Rights left, Rights right) noexcept {
  return static_cast<Rights>(static_cast<std::uint8_t>(left) | static_cast<std::uint8_t>(right));
}
constexpr bool includes(Rights given, Rights needed) noexcept {
  return (static_cast<std::uint8_t>(given) & static_cast<std::uint8_t>(needed)) == static_cast<std::uint8_t>(needed);
}

/// What a rank decides for its own part of a window; ranks may decide differently.
struct WindowOptions {
  /// What the other ranks may do. The owner may do everything. Rights guard against mistakes among the ranks of one
  /// user, not against that user's malice.
  Rights rights = Rights::all;
  /// Ranks of the job that have other rights than these, each at most once.
  std::vector<std::pair<JobRank, Rights>> rights_of{};
  std::uint32_t locks = 1;           ///< That lie with this part: see Window::lock.
  std::uint32_t notifications = 64;  ///< Counters for notified pushes to this part.
  /// Keeps all its pages in memory from now on, instead of while a transfer needs them: SetupError where that exceeds
  /// what the system allows (`ulimit -l`).
  bool pinned = false;
};

/// A part of a buffer, and the same part of what lies at a global address.
struct Region {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

enum class LockMode : std::uint8_t { exclusive, shared };

/// Words that atomic operations know.
template <class T>
concept AtomicWord = (std::integral<T> || std::floating_point<T>)&&(sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept AtomicInteger = AtomicWord<T> && std::integral<T>;

namespace window {
class WindowState;
class Put;
}  // namespace window

namespace detail {
enum class AtomicOperation : std::uint8_t { add, swap, compare_and_swap, bit_and, bit_or, bit_xor };
struct AtomicWords {
  AtomicOperation operation;
  std::uint8_t bytes;  // 4 or 8
  std::uint64_t operand;
  std::uint64_t expected;  // compare_and_swap
};
template <AtomicWord T>
std::uint64_t word_of(T value) noexcept {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<std::uint32_t>(value);
  } else {
    return std::bit_cast<std::uint64_t>(value);
  }
}
}  // namespace detail

/// Memory of one or several ranks that the others reach without those ranks' help, and the primitives to do so: the
/// eleven of MLC-1 (Sudoh et al.), and what has become common since. docs/modules/window.md has the drawings.
///
/// A window has a *part* of each rank that gives memory to it: tonari's memory, which is mapped on its host wherever it
/// may be reached, or memory the program already has. An owner need not do anything for an access, and may compute: on
/// other hosts' behalf a thread of tonari's does (but with TONARI_SERVICE_THREAD=off, only its calls).
///
/// Copies:  blocking primitives return when the local memory may be used again. What was pushed is visible to the owner
///          after flush(), unlock(), barrier() or a notification that it has seen; before, perhaps.
/// Order:   what a rank does to one part takes place in the order of its calls. Aligned words of 1, 2, 4 and 8 bytes
///          in tonari's memory are copied whole.
/// Hosts:   all is the same between hosts, but that an access is a round trip, and that direct() answers null.
/// Checks:  every access is checked against bounds and rights before anything is touched. Answers ok; bounds (no such
///          window, rank or counter, outside the part, or the part was freed); denied (no right); bad_address (the
///          owner, whose own memory it is, has unmapped or protected it; or so has the caller, reaching such memory);
///          invalid (a wrong argument: a null pointer, a misaligned word, a length that differs from its twin's);
///          peer_gone (the owner died). When not ok, part of a copy may be done.
/// Freeing: each rank frees its part by destroying its Window, without waiting for the others, whose accesses answer
///          bounds from then on; those under way are waited for. Call barrier() before, if others may still need it,
///          and unlock what is locked. tonari's memory stays until the last rank has freed.
/// Memory:  the program's own must live as long as its Window.
/// Fork:    a forked child has no tonari memory, and a copy of the program's own; the window's is the parent's, and the
///          child may call nothing of it.
/// Threads: any thread may call anything, but for construction and destruction.
class Window {
 public:
  /// Collective over all ranks of the job, or over a group in which this rank is: each gives `bytes` (0: none) of
  /// zeroed memory. All must call it, in the same order for the same group. Throws SetupError, also when a rank dies
  /// meanwhile.
  Window(Job& job, std::size_t bytes, const WindowOptions& options = {});
  Window(Job& job, const Group& group, std::size_t bytes, const WindowOptions& options = {});
  /// The same with memory that the program has; ranks may differ in this, too.
  Window(Job& job, std::span<std::byte> memory, const WindowOptions& options = {});
  Window(Job& job, const Group& group, std::span<std::byte> memory, const WindowOptions& options = {});

  /// A window of this rank alone, that all ranks of the job may reach. Not collective. Throws SetupError.
  static Window alone(Job& job, std::size_t bytes, const WindowOptions& options = {});
  static Window alone(Job& job, std::span<std::byte> memory, const WindowOptions& options = {});
  /// Another rank's window alone, of which this rank has been told an address. Reached again, it is the same window:
  /// its locks know ranks, not Windows. Throws SetupError when there is none, or no longer.
  static Window reach(Job& job, GlobalAddress address);

  Window(Window&&) noexcept;
  Window& operator=(Window&&) noexcept;
  ~Window();

  // Addresses.

  [[nodiscard]] std::uint32_t number() const noexcept;
  /// The ranks that have it, or may reach it.
  [[nodiscard]] const Group& group() const noexcept;
  /// This rank's own part.
  [[nodiscard]] std::span<std::byte> local() const noexcept;
  /// Bytes of the part of a rank of the job; 0 when it has none.
  [[nodiscard]] std::uint64_t bytes(JobRank rank) const noexcept;
  /// A place in the part of a rank of the job. Not checked: an access to it is.
  [[nodiscard]] GlobalAddress at(JobRank rank, std::uint64_t offset = 0) const noexcept {
    return {number(), rank, offset};
  }
  /// True when [address, address + bytes) lies in the window.
  [[nodiscard]] bool contains(GlobalAddress address, std::uint64_t bytes = 1) const noexcept;
  /// Translates a pointer into this rank's part, or into another's that is mapped here; nothing for any other pointer.
  [[nodiscard]] std::optional<GlobalAddress> global(const void* pointer) const noexcept;
  /// Where [address, address + bytes) can be loaded and stored here, as far as rights go; null when it is not mapped
  /// here, or is not all in the window. Stays mapped while this Window lives. Loads and stores through it need
  /// synchronisation as between threads: barrier(), lock(), a notification.
  [[nodiscard]] std::byte* direct(GlobalAddress address, std::uint64_t bytes = 1) const noexcept;

  // Copies. Local memory belongs to the caller, and is used during the call alone.

  /// MLC-1's Pull: reads.
  Status pull(std::span<std::byte> to, GlobalAddress from) noexcept;
  /// PullWithTwin: reads once, into `to` and its `twin`, which are equal then: what push_diff compares.
  Status pull_with_twin(std::span<std::byte> to, std::span<std::byte> twin, GlobalAddress from) noexcept;
  /// Reads the named regions of what lies at `from` into the same places of `to`.
  Status pull_regions(std::span<std::byte> to, GlobalAddress from, std::span<const Region> regions) noexcept;
  /// Push: writes.
  Status push(GlobalAddress to, std::span<const std::byte> from) noexcept;
  /// PushRegions: writes the named regions of `from` to the same places behind `to`. Nothing is written unless all are
  /// inside both. Several writers of one page need no twin so.
  Status push_regions(GlobalAddress to, std::span<const std::byte> from, std::span<const Region> regions) noexcept;
  /// PushDiff: writes the bytes in which `from` differs from its `twin`, and no others: several writers of one page,
  /// or of one cache line, lose nothing. Leaves the twin alone.
  Result<std::uint64_t> push_diff(GlobalAddress to, std::span<const std::byte> from,
                                  std::span<const std::byte> twin) noexcept;
  /// PPBCast: writes the same to several places. Writes to all that take it, and answers the first failure.
  Status multicast(std::span<const GlobalAddress> to, std::span<const std::byte> from) noexcept;
  /// To the same offset of every other rank's part.
  Status multicast_to_all(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  /// PPBCastRegions: push_regions to several places.
  Status multicast_regions(std::span<const GlobalAddress> to, std::span<const std::byte> from,
                           std::span<const Region> regions) noexcept;
  /// Push, then counts one on notification counter `notification` of the owner, who may wait for it: when it sees the
  /// count, it sees the data, and all that this rank pushed to it before.
  Status push_notified(GlobalAddress to, std::span<const std::byte> from, std::uint32_t notification) noexcept;
  /// What has been counted on a counter of this rank's part. Never falls.
  [[nodiscard]] std::uint64_t notified(std::uint32_t notification) const noexcept;
  /// Waits until at least `count` has been counted. Answers ok; bounds, where this rank's part has no such counter; or
  /// peer_gone when a rank of the group has died: once for each death, also for one that came before the call.
  Status wait_notified(std::uint32_t notification, std::uint64_t count) noexcept;

  /// Returns when all that this rank has pushed to a rank's part, or to all, is visible there.
  Status flush(JobRank rank) noexcept;
  Status flush() noexcept;

  // Atomic operations on aligned words of 4 and 8 bytes, with right `atomic`. Each is one indivisible step to all other
  // atomic operations on that word through windows, and orders what its rank did before it as a barrier does.

  template <AtomicInteger T>
  Result<T> fetch_add(GlobalAddress at, T value) noexcept {
    return apply<T>(at, detail::AtomicOperation::add, value);
  }
  template <AtomicWord T>
  Result<T> swap(GlobalAddress at, T value) noexcept {
    return apply<T>(at, detail::AtomicOperation::swap, value);
  }
  /// Stores `desired` if the word has the bits of `expected`; it did if `before` has.
  template <AtomicWord T>
  Result<T> compare_and_swap(GlobalAddress at, T expected, T desired) noexcept {
    return apply<T>(at, detail::AtomicOperation::compare_and_swap, desired, expected);
  }
  template <AtomicInteger T>
  Result<T> fetch_and(GlobalAddress at, T value) noexcept {
    return apply<T>(at, detail::AtomicOperation::bit_and, value);
  }
  template <AtomicInteger T>
  Result<T> fetch_or(GlobalAddress at, T value) noexcept {
    return apply<T>(at, detail::AtomicOperation::bit_or, value);
  }
  template <AtomicInteger T>
  Result<T> fetch_xor(GlobalAddress at, T value) noexcept {
    return apply<T>(at, detail::AtomicOperation::bit_xor, value);
  }

  // Locks. Each part has its own, numbered from 0; they protect what the program says they do. Fair: in the order of
  // asking, but that readers who wait side by side enter together. They are the rank's: any of its threads may unlock,
  // and threads of one rank exclude each other like ranks. They need no rights. Whoever gets a lock sees what was
  // pushed before its unlock.

  /// Answers ok; holder_died: this rank *has the lock*, and the last one to hold it exclusively died, so that what it
  /// protects may be half done; bounds when there is no such lock; peer_gone when its home died.
  Status lock(JobRank home, std::uint32_t number = 0, LockMode mode = LockMode::exclusive) noexcept;
  /// Answers again where it would have to wait. Between hosts that is also for a moment after another rank's unlock,
  /// until the lock's home knows of it, even behind a barrier.
  Status try_lock(JobRank home, std::uint32_t number = 0, LockMode mode = LockMode::exclusive) noexcept;
  /// An exclusive lock, or timed_out.
  Status lock_for(std::chrono::nanoseconds limit, JobRank home, std::uint32_t number = 0) noexcept;
  /// After flush(). Answers ok, or invalid when this rank does not hold it.
  Status unlock(JobRank home, std::uint32_t number = 0) noexcept;

  // Collective over the group of a collective window; invalid on any other. One at a time.

  /// Returns when all ranks have come, and what any of them had pushed is visible. Answers ok, or peer_gone when one
  /// died, left its job or freed its part without coming.
  Status barrier() noexcept;
  /// BarrierWithPPBCast: what each rank gives (perhaps nothing) is in all other parts, at its `offset`, when it
  /// returns.
  Status barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept;

 private:
  friend class Queue;
  friend class window::Put;
  explicit Window(std::shared_ptr<window::WindowState> access) noexcept;

  template <AtomicWord T>
  Result<T> apply(GlobalAddress at, detail::AtomicOperation operation, T operand, T expected = {}) noexcept {
    const auto [status, word] =
        apply_words(at, {operation, sizeof(T), detail::word_of(operand), detail::word_of(expected)});
    if constexpr (sizeof(T) == 4) {
      return {status, std::bit_cast<T>(static_cast<std::uint32_t>(word))};
    } else {
      return {status, std::bit_cast<T>(word)};
    }
  }
  Result<std::uint64_t> apply_words(GlobalAddress at, const detail::AtomicWords& words) noexcept;

  std::shared_ptr<window::WindowState> access_;
};

/// A window as an array of T in each part: offsets are indices. Refers to the window, which must outlive it.
template <class T>
class View {
  static_assert(std::is_trivially_copyable_v<T>, "a window carries bytes: T must be trivially copyable");

 public:
  explicit View(Window& window, std::uint64_t offset_bytes = 0) noexcept : window_(&window), offset_(offset_bytes) {}

  /// Elements of this rank's own part, to be loaded and stored.
  [[nodiscard]] std::span<T> local() const noexcept {
    const auto bytes = window_->local();
    if (offset_ >= bytes.size()) return {};
    return {reinterpret_cast<T*>(bytes.data() + offset_), (bytes.size() - offset_) / sizeof(T)};
  }
  [[nodiscard]] GlobalAddress at(JobRank rank, std::uint64_t index) const noexcept {
    const GlobalAddress start = window_->at(rank, offset_);
    return index > GlobalAddress::nowhere / sizeof(T) ? start + GlobalAddress::nowhere : start + index * sizeof(T);
  }
  Status pull(std::span<T> to, JobRank rank, std::uint64_t index) const noexcept {
    return window_->pull(std::as_writable_bytes(to), at(rank, index));
  }
  Status pull(T& to, JobRank rank, std::uint64_t index) const noexcept { return pull(std::span(&to, 1), rank, index); }
  Status push(JobRank rank, std::uint64_t index, std::span<const T> from) const noexcept {
    return window_->push(at(rank, index), std::as_bytes(from));
  }
  Status push(JobRank rank, std::uint64_t index, const T& from) const noexcept {
    return push(rank, index, std::span(&from, 1));
  }
  template <AtomicInteger Word = T>  // a template, so that there may be views of what is no such word
  Result<Word> fetch_add(JobRank rank, std::uint64_t index, std::type_identity_t<Word> value) const noexcept {
    return window_->fetch_add(at(rank, index), value);
  }

 private:
  Window* window_;
  std::uint64_t offset_;
};

}  // namespace tonari
