#pragma once

#include <tonari/address.hpp>
#include <tonari/job.hpp>
#include <tonari/rank.hpp>
#include <tonari/result.hpp>
#include <tonari/status.hpp>
#include <tonari/window_part.hpp>

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

/// Options of a rank for its own part of a window; ranks may choose differently.
struct WindowOptions {
  /// Rights of the other ranks; the owner may do everything. Rights guard against mistakes among the ranks of one user,
  /// not against that user's malice.
  Rights rights = Rights::all;
  /// Ranks of the job with other rights than `rights`, each at most once.
  std::vector<std::pair<JobRank, Rights>> rights_of{};
  std::uint32_t locks = 1;           ///< Number of locks of this part: see Window::lock.
  std::uint32_t notifications = 64;  ///< Number of counters for notified pushes to this part; they start at 0.
  /// Pins all pages of the part from now on, instead of only while a transfer needs them. SetupError if that exceeds
  /// the system's limit (`ulimit -l`).
  bool pinned = false;
};

/// A part of a buffer, and the same part of the memory at a global address.
struct Region {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

enum class LockMode : std::uint8_t { exclusive, shared };

namespace window {
class WindowState;
}

/// Memory of one or several ranks that other ranks reach without their help, and the primitives to do so: the eleven of
/// MLC-1 (Sudoh et al.), and a few that have become common since. docs/modules/window.md has the drawings.
///
/// A window has one *part* for each rank that gives memory to it: memory of tonari, which is mapped on its host
/// wherever it may be reached, or memory that the program already has. The owner of a part need not do anything for an
/// access, and may compute: its service thread serves other hosts (with TONARI_SERVICE_THREAD=off, only its calls do).
///
/// Arguments: the destination comes first, as in an assignment: pull(to, from), push(to, from).
/// Copies:    a blocking primitive returns when the local memory may be used again. Pushed data is visible to the owner
///            after flush(), unlock(), barrier() or a notification that the owner has seen; before, it may be.
/// Order:     operations of one thread on one part take place in the order of its calls. Operations of different
///            threads, queues or ranks, and on different parts, have no order without synchronisation.
/// Alignment: copies take any address and length. Aligned words of 1, 2, 4 and 8 bytes in tonari's memory are copied
///            whole. Atomic operations need words aligned to their size. Parts of tonari's memory start on a page. The
///            owner, and ranks with a direct() pointer, may use std::atomic_ref on the same words.
/// Progress:  see Request. An access to another host, unless by RDMA, needs the owner's service thread, or the owner
///            inside any call of the library. So does an atomic operation on memory of the program on the same host,
///            and a copy of that memory where the system forbids direct copies.
/// Hosts:     between hosts the semantics are the same; each access costs a round trip, and direct() returns null.
/// Checks:    every access is checked against bounds and rights before anything is touched. Copies and atomic
///            operations return:
///              ok           done.
///              bounds       no such window, rank or counter, a range outside the part, or the part was freed.
///              denied       the owner gave this rank no right to do that.
///              bad_address  the owner of program memory, or the caller, has unmapped or protected it.
///              invalid      a wrong argument: a null pointer, a misaligned word, a twin of another length.
///              peer_gone    the owner died.
///            After any other status than ok, a part of a copy may be done.
/// Freeing:   each rank frees its part by destroying its Window, without waiting for other ranks, whose accesses return
///            bounds from then on; accesses under way are waited for. Call barrier() before if other ranks may still
///            need the part, and unlock its locks. tonari's memory stays until the last rank has freed its part.
/// Memory:    of the program must live as long as its Window.
/// Fork:      a forked child has no tonari memory and a copy of the program's own. The window stays the parent's; the
///            child must not use it.
/// Threads:   any thread may call anything, except construction and destruction.
class Window {
 public:
  /// Collective over all ranks of the job, or over a group that contains this rank. Each rank gives `bytes` of zeroed
  /// memory (0: none). All ranks call it, in the same order for the same group. Throws SetupError, also if a rank dies
  /// meanwhile.
  Window(Job& job, std::size_t bytes, const WindowOptions& options = {});
  Window(Job& job, const Group& group, std::size_t bytes, const WindowOptions& options = {});
  /// The same with memory of the program. Some ranks may give memory of theirs, and others tonari's.
  Window(Job& job, std::span<std::byte> memory, const WindowOptions& options = {});
  Window(Job& job, const Group& group, std::span<std::byte> memory, const WindowOptions& options = {});

  /// A window with a part of this rank only, which all ranks of the job may reach. Not collective. Throws SetupError.
  static Window alone(Job& job, std::size_t bytes, const WindowOptions& options = {});
  static Window alone(Job& job, std::span<std::byte> memory, const WindowOptions& options = {});
  /// Opens another rank's window alone, by an address that this rank was sent. Opened twice, it is the same window: its
  /// locks belong to ranks, not to Windows. Throws SetupError if there is no such window, or no longer.
  static Window reach(Job& job, GlobalAddress address);

  Window(Window&&) noexcept;
  Window& operator=(Window&&) noexcept;
  ~Window();

  // Addresses.

  [[nodiscard]] std::uint32_t number() const noexcept { return table_->window; }
  /// The ranks that created it together, or that may reach it.
  [[nodiscard]] const Group& group() const noexcept;
  /// This rank's own part.
  [[nodiscard]] std::span<std::byte> local() const noexcept;
  /// Length of a rank's part in bytes; 0 if it has none.
  [[nodiscard]] std::uint64_t bytes(JobRank rank) const noexcept;
  /// A place in a rank's part. Not checked: accesses to it are.
  [[nodiscard]] GlobalAddress at(JobRank rank, std::uint64_t offset = 0) const noexcept {
    return {number(), rank, offset};
  }
  /// True if all of [address, address + bytes) is in the window.
  [[nodiscard]] bool contains(GlobalAddress address, std::uint64_t bytes = 1) const noexcept;
  /// The address of a pointer into this rank's part, or into a part that is mapped here; nothing for other pointers.
  [[nodiscard]] std::optional<GlobalAddress> global(const void* pointer) const noexcept;
  /// A pointer to [address, address + bytes), for loads and stores as far as rights go; null if it is not mapped here
  /// or not all in the window. It is valid while this Window lives. Loads and stores need synchronisation as between
  /// threads: barrier(), a lock, a notification.
  [[nodiscard]] std::byte* direct(GlobalAddress address, std::uint64_t bytes = 1) const noexcept {
    const detail::Part* const part = table_->find_mapped(address, bytes, Rights::none);
    if (part == nullptr || part->rights == Rights::none) return direct_by_library(address, bytes);
    return part->at(address.offset);
  }

  // Copies. Local memory is used during the call only. Statuses: see Checks above.

  /// Reads (MLC-1's Pull; a get).
  Status pull(std::span<std::byte> to, GlobalAddress from) noexcept {
    const detail::Part* const part = find_short(from, to, Rights::read);
    if (part == nullptr) return pull_by_library(to, from);
    detail::copy_bytes(to.data(), part->at(from.offset), to.size());
    return Status::ok;
  }
  /// Reads once, into `to` and its `twin`, which are then equal: push_diff compares them (PullWithTwin).
  Status pull_with_twin(std::span<std::byte> to, std::span<std::byte> twin, GlobalAddress from) noexcept;
  /// Reads the given regions of the memory at `from` into the same places of `to`.
  Status pull_regions(std::span<std::byte> to, GlobalAddress from, std::span<const Region> regions) noexcept;
  /// Writes (MLC-1's Push; a put).
  Status push(GlobalAddress to, std::span<const std::byte> from) noexcept {
    const detail::Part* const part = find_short(to, from, Rights::write);
    if (part == nullptr) return push_by_library(to, from);
    detail::copy_bytes(part->at(to.offset), from.data(), from.size());
    return Status::ok;
  }
  /// Writes the given regions of `from` to the same places of the memory at `to` (PushRegions). Writes nothing unless
  /// all regions are inside both. With it, several writers of one page need no twin.
  Status push_regions(GlobalAddress to, std::span<const std::byte> from, std::span<const Region> regions) noexcept;
  /// Writes the bytes in which `from` differs from its `twin`, and no other bytes (PushDiff): several writers of one
  /// page or cache line lose nothing. Leaves the twin as it is. Returns the number of bytes that differed and were
  /// written.
  Result<std::uint64_t> push_diff(GlobalAddress to, std::span<const std::byte> from,
                                  std::span<const std::byte> twin) noexcept;
  /// Writes the same data to several places (PPBCast). Writes to every place that accepts it; returns the first
  /// failure.
  Status multicast(std::span<const GlobalAddress> to, std::span<const std::byte> from) noexcept;
  /// The same to one offset of every other rank's part.
  Status multicast_to_all(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  /// push_regions to several places (PPBCastRegions).
  Status multicast_regions(std::span<const GlobalAddress> to, std::span<const std::byte> from,
                           std::span<const Region> regions) noexcept;
  /// Writes, then adds one to the owner's notification counter `notification`, for which the owner can wait. When the
  /// owner sees the count, it sees the data, and all that this rank pushed to it before.
  Status push_notified(GlobalAddress to, std::span<const std::byte> from, std::uint32_t notification) noexcept;
  /// The value of a counter of this rank's part. Never decreases.
  [[nodiscard]] std::uint64_t notified(std::uint32_t notification) const noexcept;
  /// Waits until a counter of this rank's part is at least `count`. Returns:
  ///   ok         the counter is there.
  ///   bounds     this rank's part has no such counter.
  ///   peer_gone  a rank of the group died: once per death, also for a death before the call. A rank that leaves does
  ///              not end the wait.
  Status wait_notified(std::uint32_t notification, std::uint64_t count) noexcept;

  /// Returns when all that this rank has pushed to a rank's part, or to all parts, is visible there. Pushes posted to a
  /// queue need a flush in that queue. Returns ok; bounds: no such rank; peer_gone: the owner died.
  Status flush(JobRank rank) noexcept;
  Status flush() noexcept;

  // Atomic operations on aligned words of 4 and 8 bytes, with right `atomic`. Each is one indivisible step with respect
  // to all other atomic operations on that word through windows, and is ordered as a memory barrier is. They return the
  // word before. Statuses: see Checks above.

  template <AtomicInteger T>
  Result<T> fetch_add(GlobalAddress at, T value) noexcept {
    return apply<T>(at, detail::AtomicOperation::add, value);
  }
  template <AtomicWord T>
  Result<T> swap(GlobalAddress at, T value) noexcept {
    return apply<T>(at, detail::AtomicOperation::swap, value);
  }
  /// Stores `desired` if the word has the bits of `expected`. It did so if the returned value has these bits.
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

  // Locks. Each part has WindowOptions::locks of them, numbered from 0; the program decides what they protect. They are
  // granted in the order of the requests, except that neighbouring readers enter together. A lock belongs to the rank:
  // any of its threads may unlock it, and threads of one rank exclude each other as ranks do. Locks need no rights. The
  // next holder sees everything that was pushed before the unlock.

  /// Waits for a lock of `home`'s part. Returns:
  ///   ok           locked.
  ///   holder_died  locked, but the last rank that held it exclusively died: the data may be half written.
  ///   bounds       not locked: there is no such lock, or its home has freed its part.
  ///   invalid      not locked: `mode` is no mode.
  ///   peer_gone    not locked: its home died.
  ///   no_memory    not locked: the system refused memory for the first use of this lock.
  Status lock(JobRank home, std::uint32_t number = 0, LockMode mode = LockMode::exclusive) noexcept;
  /// The same without waiting. Returns also:
  ///   again        not locked: it is held. Between hosts also for a moment after another rank's unlock, even behind a
  ///                barrier, until the lock's home knows of it.
  Status try_lock(JobRank home, std::uint32_t number = 0, LockMode mode = LockMode::exclusive) noexcept;
  /// Waits for an exclusive lock for a limited time. Returns as lock(), or timed_out: not locked.
  Status lock_for(std::chrono::nanoseconds limit, JobRank home, std::uint32_t number = 0) noexcept;
  /// Flushes, then unlocks. Returns:
  ///   ok         unlocked.
  ///   invalid    this rank does not hold the lock.
  ///   bounds     there is no such lock.
  ///   no_memory  the system refused memory. This rank does not hold the lock: it has never used it.
  Status unlock(JobRank home, std::uint32_t number = 0) noexcept;

  // Collective over the group of a collective window, one at a time; on any other window they return invalid.

  /// Returns when all ranks have called it and everything that any of them pushed is visible. Returns ok; peer_gone: a
  /// rank died, left its job or freed its part without calling it.
  Status barrier() noexcept;
  /// The same, and copies the bytes that each rank passes (possibly none) to all other parts, at that rank's `offset`
  /// (BarrierWithPPBCast). Returns also the statuses of multicast_to_all(); the barrier takes place nevertheless.
  Status barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept;

 private:
  friend class window::WindowState;
  explicit Window(std::shared_ptr<window::WindowState> state) noexcept;

  // Returns the part if the caller can copy at once, with one memcpy; otherwise nullptr.
  [[nodiscard]] const detail::Part* find_short(GlobalAddress address, std::span<const std::byte> local,
                                               Rights needed) const noexcept {
    if (local.data() == nullptr || local.size() >= detail::copied_together_bytes_min) return nullptr;
    return table_->find_mapped(address, local.size(), needed);
  }
  [[nodiscard]] std::byte* direct_by_library(GlobalAddress address, std::uint64_t bytes) const noexcept;
  Status pull_by_library(std::span<std::byte> to, GlobalAddress from) noexcept;
  Status push_by_library(GlobalAddress to, std::span<const std::byte> from) noexcept;

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
  Result<std::uint64_t> apply_words(GlobalAddress at, const detail::AtomicWords& words) noexcept {
    const detail::Part* const part = table_->find_mapped(at, words.bytes, Rights::atomic);
    if (part == nullptr || reinterpret_cast<std::uintptr_t>(part->at(at.offset)) % words.bytes != 0) {
      return apply_by_library(at, words);
    }
    return {Status::ok, detail::apply_to_word(part->at(at.offset), words)};
  }
  Result<std::uint64_t> apply_by_library(GlobalAddress at, const detail::AtomicWords& words) noexcept;

  std::shared_ptr<detail::PartTable> table_;  // base class of the window::WindowState that it points to
};

/// A place of a T in a window: a GlobalAddress that counts in elements. Plain data, to be sent and stored like a
/// number. It is dereferenced by the pull, push and atomic operations of a View.
template <class T>
class global_ptr {
 public:
  constexpr global_ptr() noexcept = default;  ///< Null: in no window.
  explicit constexpr global_ptr(GlobalAddress address) noexcept : address_(address) {}

  [[nodiscard]] constexpr GlobalAddress address() const noexcept { return address_; }
  /// The rank whose memory it is.
  [[nodiscard]] constexpr JobRank rank() const noexcept { return address_.rank; }
  explicit constexpr operator bool() const noexcept { return address_.window != 0; }

  /// A pointer moved out of the address range stays out of every window, like a GlobalAddress.
  constexpr global_ptr& operator+=(std::int64_t count) noexcept {
    const std::uint64_t steps = count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
    const std::uint64_t bytes = steps > GlobalAddress::nowhere / sizeof(T) ? GlobalAddress::nowhere : steps * sizeof(T);
    count < 0 ? address_ -= bytes : address_ += bytes;
    return *this;
  }
  constexpr global_ptr& operator-=(std::int64_t count) noexcept { return *this += -count; }
  constexpr global_ptr& operator++() noexcept { return *this += 1; }
  constexpr global_ptr& operator--() noexcept { return *this += -1; }
  friend constexpr global_ptr operator+(global_ptr pointer, std::int64_t count) noexcept { return pointer += count; }
  friend constexpr global_ptr operator-(global_ptr pointer, std::int64_t count) noexcept { return pointer -= count; }
  /// Elements from `from` to `to`, which must be in the same part.
  friend constexpr std::int64_t operator-(global_ptr to, global_ptr from) noexcept {
    return static_cast<std::int64_t>(to.address_.offset - from.address_.offset) / static_cast<std::int64_t>(sizeof(T));
  }
  friend constexpr auto operator<=>(const global_ptr&, const global_ptr&) = default;

 private:
  GlobalAddress address_{};
};

/// A window as an array of T in each part: offsets are indices. Places are named by a global_ptr; in pull, push and the
/// atomic operations also by rank and index. Statuses and threads: as Window's calls of the same name. Refers to the
/// window, which must outlive it. Other calls are Window's only: the ones that name no elements (flush, notified,
/// wait_notified, locks, barrier), and the ones whose lists or offsets count in bytes (pull_regions, push_regions,
/// multicast, multicast_regions, barrier_with_multicast).
template <class T>
class View {
  static_assert(std::is_trivially_copyable_v<T>, "a window carries bytes: T must be trivially copyable");

 public:
  /// The array of each part starts `offset_bytes` behind its beginning.
  explicit View(Window& window, std::uint64_t offset_bytes = 0) noexcept : window_(&window), offset_(offset_bytes) {}

  /// The elements of this rank's own part, for loads and stores.
  [[nodiscard]] std::span<T> local() const noexcept {
    const auto bytes = window_->local();
    if (offset_ >= bytes.size()) return {};
    return {reinterpret_cast<T*>(bytes.data() + offset_), (bytes.size() - offset_) / sizeof(T)};
  }
  /// Number of whole elements in a rank's part.
  [[nodiscard]] std::uint64_t size(JobRank rank) const noexcept {
    const std::uint64_t bytes = window_->bytes(rank);
    return bytes <= offset_ ? 0 : (bytes - offset_) / sizeof(T);
  }
  [[nodiscard]] GlobalAddress at(JobRank rank, std::uint64_t index) const noexcept {
    const GlobalAddress start = window_->at(rank, offset_);
    return index > GlobalAddress::nowhere / sizeof(T) ? start + GlobalAddress::nowhere : start + index * sizeof(T);
  }
  [[nodiscard]] global_ptr<T> pointer(JobRank rank, std::uint64_t index = 0) const noexcept {
    return global_ptr<T>(at(rank, index));
  }
  /// A plain pointer to `count` elements that are mapped here, else null: see Window::direct.
  [[nodiscard]] T* direct(global_ptr<T> from, std::uint64_t count = 1) const noexcept {
    if (count > GlobalAddress::nowhere / sizeof(T)) return nullptr;
    return reinterpret_cast<T*>(window_->direct(from.address(), count * sizeof(T)));
  }

  Status pull(std::span<T> to, global_ptr<T> from) const noexcept {
    return window_->pull(std::as_writable_bytes(to), from.address());
  }
  Status pull(T& to, global_ptr<T> from) const noexcept { return pull(std::span(&to, 1), from); }
  Status pull(std::span<T> to, JobRank rank, std::uint64_t index) const noexcept {
    return pull(to, pointer(rank, index));
  }
  Status pull(T& to, JobRank rank, std::uint64_t index) const noexcept { return pull(std::span(&to, 1), rank, index); }
  /// Reads one element and returns it.
  [[nodiscard]] Result<T> pull(global_ptr<T> from) const noexcept {
    Result<T> result;
    result.status = pull(result.value, from);
    return result;
  }
  Status pull_with_twin(std::span<T> to, std::span<T> twin, global_ptr<T> from) const noexcept {
    return window_->pull_with_twin(std::as_writable_bytes(to), std::as_writable_bytes(twin), from.address());
  }

  Status push(global_ptr<T> to, std::span<const T> from) const noexcept {
    return window_->push(to.address(), std::as_bytes(from));
  }
  Status push(global_ptr<T> to, const T& from) const noexcept { return push(to, std::span(&from, 1)); }
  Status push(JobRank rank, std::uint64_t index, std::span<const T> from) const noexcept {
    return push(pointer(rank, index), from);
  }
  Status push(JobRank rank, std::uint64_t index, const T& from) const noexcept {
    return push(rank, index, std::span(&from, 1));
  }
  /// Returns the number of bytes, not elements, that differed.
  Result<std::uint64_t> push_diff(global_ptr<T> to, std::span<const T> from, std::span<const T> twin) const noexcept {
    return window_->push_diff(to.address(), std::as_bytes(from), std::as_bytes(twin));
  }
  Status push_notified(global_ptr<T> to, std::span<const T> from, std::uint32_t notification) const noexcept {
    return window_->push_notified(to.address(), std::as_bytes(from), notification);
  }
  Status push_notified(global_ptr<T> to, const T& from, std::uint32_t notification) const noexcept {
    return push_notified(to, std::span(&from, 1), notification);
  }
  /// Writes the same elements to one index of every other rank's part.
  Status multicast_to_all(std::uint64_t index, std::span<const T> from) const noexcept {
    const bool is_in = index <= (GlobalAddress::nowhere - offset_) / sizeof(T);
    return window_->multicast_to_all(is_in ? offset_ + index * sizeof(T) : GlobalAddress::nowhere, std::as_bytes(from));
  }

  // Atomic operations. Templates, so that there may be views of types that are no words.

  template <AtomicInteger Word = T>
  Result<Word> fetch_add(global_ptr<T> at, std::type_identity_t<Word> value) const noexcept {
    return window_->fetch_add(at.address(), value);
  }
  template <AtomicInteger Word = T>
  Result<Word> fetch_add(JobRank rank, std::uint64_t index, std::type_identity_t<Word> value) const noexcept {
    return window_->fetch_add(at(rank, index), value);
  }
  template <AtomicWord Word = T>
  Result<Word> swap(global_ptr<T> at, std::type_identity_t<Word> value) const noexcept {
    return window_->swap(at.address(), value);
  }
  template <AtomicWord Word = T>
  Result<Word> swap(JobRank rank, std::uint64_t index, std::type_identity_t<Word> value) const noexcept {
    return window_->swap(at(rank, index), value);
  }
  template <AtomicWord Word = T>
  Result<Word> compare_and_swap(global_ptr<T> at, std::type_identity_t<Word> expected,
                                std::type_identity_t<Word> desired) const noexcept {
    return window_->compare_and_swap(at.address(), expected, desired);
  }
  template <AtomicWord Word = T>
  Result<Word> compare_and_swap(JobRank rank, std::uint64_t index, std::type_identity_t<Word> expected,
                                std::type_identity_t<Word> desired) const noexcept {
    return window_->compare_and_swap(at(rank, index), expected, desired);
  }
  template <AtomicInteger Word = T>
  Result<Word> fetch_and(global_ptr<T> at, std::type_identity_t<Word> value) const noexcept {
    return window_->fetch_and(at.address(), value);
  }
  template <AtomicInteger Word = T>
  Result<Word> fetch_and(JobRank rank, std::uint64_t index, std::type_identity_t<Word> value) const noexcept {
    return window_->fetch_and(at(rank, index), value);
  }
  template <AtomicInteger Word = T>
  Result<Word> fetch_or(global_ptr<T> at, std::type_identity_t<Word> value) const noexcept {
    return window_->fetch_or(at.address(), value);
  }
  template <AtomicInteger Word = T>
  Result<Word> fetch_or(JobRank rank, std::uint64_t index, std::type_identity_t<Word> value) const noexcept {
    return window_->fetch_or(at(rank, index), value);
  }
  template <AtomicInteger Word = T>
  Result<Word> fetch_xor(global_ptr<T> at, std::type_identity_t<Word> value) const noexcept {
    return window_->fetch_xor(at.address(), value);
  }
  template <AtomicInteger Word = T>
  Result<Word> fetch_xor(JobRank rank, std::uint64_t index, std::type_identity_t<Word> value) const noexcept {
    return window_->fetch_xor(at(rank, index), value);
  }

 private:
  Window* window_;
  std::uint64_t offset_;
};

}  // namespace tonari
