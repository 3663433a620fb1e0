#pragma once

#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tonari {

/// The primitives of Window that a descriptor can ask for.
enum class Primitive : std::uint8_t {
  none,
  pull,
  pull_with_twin,
  pull_regions,
  push,
  push_regions,
  push_diff,
  push_notified,
  multicast,
  multicast_regions,
  atomic,
  lock,
  unlock,
  barrier,
  barrier_with_multicast,
  flush,
};

/// A primitive written down in the caller's memory, as in MLC-1: its arguments, and room for its outcome. The functions
/// below create descriptors and check nothing; execution checks. The descriptor and everything it points to belong to
/// the queue from post() until poll(), wait() or wait_all() returns it, or until it is counted. Then it may be posted
/// again. It must not be in memory that tonari pages (shared arrays, far memory).
struct Descriptor {
  Primitive primitive = Primitive::none;
  LockMode mode = LockMode::exclusive;
  Status status = Status::ok;  ///< When complete.
  std::uint32_t number = 0;    ///< Number of a lock or notification.
  GlobalAddress address{};     ///< For a lock: its rank is the home.
  std::byte* local = nullptr;  ///< A push only reads it.
  std::byte* twin = nullptr;   ///< A push only reads it.
  std::uint64_t bytes = 0;     ///< Length of `local`.
  std::span<const Region> regions{};
  std::span<const GlobalAddress> targets{};  ///< Destinations of a multicast.
  detail::AtomicWords words{};
  std::uint64_t result = 0;    ///< When complete: the word before an atomic operation; bytes that differed.
  std::uint32_t state = 0;     ///< Used by the queue, like `next`.
  Descriptor* next = nullptr;  ///< In use until the descriptor is returned.

  // Values of `state`.
  static constexpr std::uint32_t idle = 0;
  static constexpr std::uint32_t under_way = 1;
  static constexpr std::uint32_t unreturned = 2;  ///< Complete, and not yet returned by the queue.

  /// True when it is not under way: then `status` and `result` are valid.
  [[nodiscard]] bool complete() const noexcept {
    // Acquire: pairs with the queue's release of status, result and data. (C++20 has no atomic_ref of const.)
    return std::atomic_ref(const_cast<std::uint32_t&>(state)).load(std::memory_order_acquire) != under_way;
  }

  static Descriptor pull(std::span<std::byte> to, GlobalAddress from) noexcept;
  static Descriptor pull_with_twin(std::span<std::byte> to, std::span<std::byte> twin, GlobalAddress from) noexcept;
  static Descriptor pull_regions(std::span<std::byte> to, GlobalAddress from, std::span<const Region> regions) noexcept;
  static Descriptor push(GlobalAddress to, std::span<const std::byte> from) noexcept;
  static Descriptor push_regions(GlobalAddress to, std::span<const std::byte> from,
                                 std::span<const Region> regions) noexcept;
  static Descriptor push_diff(GlobalAddress to, std::span<const std::byte> from,
                              std::span<const std::byte> twin) noexcept;
  static Descriptor push_notified(GlobalAddress to, std::span<const std::byte> from,
                                  std::uint32_t notification) noexcept;
  static Descriptor multicast(std::span<const GlobalAddress> to, std::span<const std::byte> from) noexcept;
  static Descriptor multicast_regions(std::span<const GlobalAddress> to, std::span<const std::byte> from,
                                      std::span<const Region> regions) noexcept;
  static Descriptor lock(JobRank home, std::uint32_t number = 0, LockMode mode = LockMode::exclusive) noexcept;
  static Descriptor unlock(JobRank home, std::uint32_t number = 0) noexcept;
  static Descriptor barrier() noexcept;
  static Descriptor barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  static Descriptor flush() noexcept;

  template <AtomicInteger T>
  static Descriptor fetch_add(GlobalAddress at, T value) noexcept {
    return atomic<T>(at, detail::AtomicOperation::add, value);
  }
  template <AtomicWord T>
  static Descriptor swap(GlobalAddress at, T value) noexcept {
    return atomic<T>(at, detail::AtomicOperation::swap, value);
  }
  template <AtomicWord T>
  static Descriptor compare_and_swap(GlobalAddress at, T expected, T desired) noexcept {
    return atomic<T>(at, detail::AtomicOperation::compare_and_swap, desired, expected);
  }
  template <AtomicInteger T>
  static Descriptor fetch_and(GlobalAddress at, T value) noexcept {
    return atomic<T>(at, detail::AtomicOperation::bit_and, value);
  }
  template <AtomicInteger T>
  static Descriptor fetch_or(GlobalAddress at, T value) noexcept {
    return atomic<T>(at, detail::AtomicOperation::bit_or, value);
  }
  template <AtomicInteger T>
  static Descriptor fetch_xor(GlobalAddress at, T value) noexcept {
    return atomic<T>(at, detail::AtomicOperation::bit_xor, value);
  }

 private:
  static Descriptor copy(Primitive primitive, GlobalAddress address, const std::byte* local,
                         std::size_t bytes) noexcept {
    Descriptor made;
    made.primitive = primitive;
    made.address = address;
    made.local = const_cast<std::byte*>(local);  // only read if it was const
    made.bytes = bytes;
    return made;
  }
  template <AtomicWord T>
  static Descriptor atomic(GlobalAddress at, detail::AtomicOperation operation, T operand, T expected = {}) noexcept {
    Descriptor made;
    made.primitive = Primitive::atomic;
    made.address = at;
    made.words = {operation, sizeof(T), detail::word_of(operand), detail::word_of(expected)};
    return made;
  }
};

// Inline, so that fields that nobody reads are not written.

inline Descriptor Descriptor::pull(std::span<std::byte> to, GlobalAddress from) noexcept {
  return copy(Primitive::pull, from, to.data(), to.size());
}

// A twin of another length is refused like a twin at no address.
inline Descriptor Descriptor::pull_with_twin(std::span<std::byte> to, std::span<std::byte> twin,
                                             GlobalAddress from) noexcept {
  Descriptor made = copy(Primitive::pull_with_twin, from, to.data(), to.size());
  made.twin = twin.size() == to.size() ? twin.data() : nullptr;
  return made;
}

inline Descriptor Descriptor::pull_regions(std::span<std::byte> to, GlobalAddress from,
                                           std::span<const Region> regions) noexcept {
  Descriptor made = copy(Primitive::pull_regions, from, to.data(), to.size());
  made.regions = regions;
  return made;
}

inline Descriptor Descriptor::push(GlobalAddress to, std::span<const std::byte> from) noexcept {
  return copy(Primitive::push, to, from.data(), from.size());
}

inline Descriptor Descriptor::push_regions(GlobalAddress to, std::span<const std::byte> from,
                                           std::span<const Region> regions) noexcept {
  Descriptor made = copy(Primitive::push_regions, to, from.data(), from.size());
  made.regions = regions;
  return made;
}

inline Descriptor Descriptor::push_diff(GlobalAddress to, std::span<const std::byte> from,
                                        std::span<const std::byte> twin) noexcept {
  Descriptor made = copy(Primitive::push_diff, to, from.data(), from.size());
  made.twin = twin.size() == from.size() ? const_cast<std::byte*>(twin.data()) : nullptr;  // only read
  return made;
}

inline Descriptor Descriptor::push_notified(GlobalAddress to, std::span<const std::byte> from,
                                            std::uint32_t notification) noexcept {
  Descriptor made = copy(Primitive::push_notified, to, from.data(), from.size());
  made.number = notification;
  return made;
}

inline Descriptor Descriptor::multicast(std::span<const GlobalAddress> to, std::span<const std::byte> from) noexcept {
  Descriptor made = copy(Primitive::multicast, {}, from.data(), from.size());
  made.targets = to;
  return made;
}

inline Descriptor Descriptor::multicast_regions(std::span<const GlobalAddress> to, std::span<const std::byte> from,
                                                std::span<const Region> regions) noexcept {
  Descriptor made = copy(Primitive::multicast_regions, {}, from.data(), from.size());
  made.targets = to;
  made.regions = regions;
  return made;
}

inline Descriptor Descriptor::lock(JobRank home, std::uint32_t number, LockMode mode) noexcept {
  Descriptor made;
  made.primitive = Primitive::lock;
  made.address.rank = home;
  made.number = number;
  made.mode = mode;
  return made;
}

inline Descriptor Descriptor::unlock(JobRank home, std::uint32_t number) noexcept {
  Descriptor made = lock(home, number);
  made.primitive = Primitive::unlock;
  return made;
}

inline Descriptor Descriptor::barrier() noexcept {
  Descriptor made;
  made.primitive = Primitive::barrier;
  return made;
}

inline Descriptor Descriptor::barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  return copy(Primitive::barrier_with_multicast, {0, JobRank{}, offset}, from.data(), from.size());
}

inline Descriptor Descriptor::flush() noexcept {
  Descriptor made;
  made.primitive = Primitive::flush;
  return made;
}

namespace window {
class DescriptorQueue;
}  // namespace window

/// Executes descriptors of one window in the order in which they were posted, while the caller computes. A lock, the
/// copies that it protects and its unlock can be posted together. post() makes copies of up to 128 KiB within the host
/// itself. Longer copies, copies between hosts, and descriptors that have to wait, are left to a thread of this rank,
/// which starts when it is first needed, or to wait().
///
/// Failures: a descriptor that fails does not stop the next ones: after a lock that returned peer_gone, the copies that
///           it should protect are made all the same.
/// Owns:     no memory of the caller: see Descriptor.
/// Threads:  one at a time. A window may have any number of queues, which do not wait for each other.
/// Progress: by the rank's queue thread, also while the caller computes; if it cannot start, by poll() and wait().
/// Life:     may outlive its Window, whose part is freed when both are destroyed; must not outlive its Job.
/// Costs:    posting, polling and completing allocate nothing.
class Queue {
 public:
  /// Throws std::bad_alloc.
  explicit Queue(Window& window);
  /// Adds one to `completions` (with release) for each complete descriptor. The counter must outlive the queue. poll()
  /// and wait() then return no descriptors: each is the caller's again when it is counted.
  Queue(Window& window, std::atomic<std::uint64_t>& completions);
  Queue(Queue&&) = delete;
  ~Queue();  ///< Waits for all posted descriptors.

  /// Posts all descriptors, in their order. Returns ok; or invalid, and posts nothing, if one of them is in a queue
  /// already or names no primitive. Other mistakes are reported by the status of the descriptor.
  Status post(std::span<Descriptor> descriptors) noexcept;
  Status post(Descriptor& descriptor) noexcept { return post(std::span(&descriptor, 1)); }
  /// Returns the oldest complete descriptor that was not returned yet; null if there is none. Does not block.
  Descriptor* poll() noexcept;
  /// The same, but waits while a descriptor is under way.
  Descriptor* wait() noexcept;
  /// Waits for all descriptors, after which they are the caller's again. Returns ok, or the first failure since the
  /// last call. holder_died counts as no failure.
  Status wait_all() noexcept;

 private:
  std::shared_ptr<window::DescriptorQueue> work_;
};

}  // namespace tonari
