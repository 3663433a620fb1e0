#pragma once

#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tonari {

/// What a descriptor asks for: the primitives of Window.
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

/// A primitive written down, as MLC-1 has it: in the caller's memory, with all that it needs, and where its outcome
/// comes to lie. Made by the functions below, which check nothing; executing it does. It and everything it points to
/// belong to the queue from post() until it is answered: by poll(), wait() or wait_all(), or by counting it. Then it
/// may be posted again. Must not lie in memory that tonari pages.
struct Descriptor {
  Primitive primitive = Primitive::none;
  LockMode mode = LockMode::exclusive;
  Status status = Status::ok;  ///< When complete.
  std::uint32_t number = 0;    ///< Of a lock or notification.
  GlobalAddress address{};     ///< `rank`: the home of a lock.
  std::byte* local = nullptr;  ///< Read only by a push.
  std::byte* twin = nullptr;   ///< Read only by a push.
  std::uint64_t bytes = 0;     ///< Of `local`.
  std::span<const Region> regions{};
  std::span<const GlobalAddress> targets{};  ///< Of a multicast.
  detail::AtomicWords words{};
  std::uint64_t result = 0;    ///< When complete: the word before an atomic operation; bytes of a push of differences.
  std::uint32_t state = 0;     ///< The queue's, as the next.
  Descriptor* next = nullptr;  ///< When complete and not answered yet, too.

  static constexpr std::uint32_t idle = 0;
  static constexpr std::uint32_t under_way = 1;
  static constexpr std::uint32_t unanswered = 2;

  /// True when it is not under way; then it shows what it did.
  [[nodiscard]] bool complete() const noexcept {
    // Acquire: its status, its result and the data. (C++20 has no atomic_ref of const.)
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
  template <AtomicWord T>
  static Descriptor atomic(GlobalAddress at, detail::AtomicOperation operation, T operand, T expected = {}) noexcept {
    Descriptor made;
    made.primitive = Primitive::atomic;
    made.address = at;
    made.words = {operation, sizeof(T), detail::word_of(operand), detail::word_of(expected)};
    return made;
  }
};

namespace window {
class DescriptorQueue;
}  // namespace window

/// Works through descriptors of one window in the order in which they were posted, while the poster computes: a lock,
/// what it protects, and its unlock can be posted at once. Short copies are made by post() itself; what is long, or has
/// to wait, is left to a thread of this rank's that starts with the first need of it, or to wait().
///
/// Owns:    nothing of the caller's: see Descriptor.
/// Threads: one at a time. A window may have any number of queues, which do not wait for each other.
/// Life:    may outlive its Window, whose part is freed when both are gone; not its Job.
/// Costs:   posting, polling and completing allocate nothing.
class Queue {
 public:
  /// Throws std::bad_alloc.
  explicit Queue(Window& window);
  /// Counts each complete descriptor on `completions` (with release), which must outlive the queue, and answers none:
  /// what poll() and wait() would have answered is over when it is counted.
  Queue(Window& window, std::atomic<std::uint64_t>& completions);
  Queue(Queue&&) = delete;
  ~Queue();  ///< Waits for all that was posted.

  /// Posts them all, in their order. Answers ok; or invalid, and posts nothing, when one of them is in a queue already
  /// or asks for nothing that there is. What else is wrong with one is told by its status.
  Status post(std::span<Descriptor> descriptors) noexcept;
  Status post(Descriptor& descriptor) noexcept { return post(std::span(&descriptor, 1)); }
  /// Answers the oldest complete descriptor that was not answered yet; null when there is none. Does not block.
  Descriptor* poll() noexcept;
  /// The same, but waits while one is under way.
  Descriptor* wait() noexcept;
  /// Waits for all and answers them all: ok, or the first failure since it was last called. holder_died is none.
  Status wait_all() noexcept;

 private:
  std::shared_ptr<window::DescriptorQueue> work_;
};

}  // namespace tonari
