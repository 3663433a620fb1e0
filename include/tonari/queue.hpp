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
/// comes to lie. Made by the functions below, which check nothing; posting does. It and everything it points to belong
/// to the queue from post() until it is complete; then it may be posted again. Must not lie in memory that is paged or
/// shared by tonari.
struct Descriptor {
  Primitive primitive = Primitive::none;
  LockMode mode = LockMode::exclusive;
  Status status = Status::ok;  ///< When complete.
  std::uint32_t number = 0;    ///< Of a lock or notification.
  GlobalAddress address{};
  std::byte* local = nullptr;
  std::byte* twin = nullptr;
  std::uint64_t bytes = 0;  ///< Of `local`.
  std::span<const Region> regions{};
  std::span<const GlobalAddress> targets{};  ///< Of a multicast.
  window::AtomicWords words{};
  std::uint64_t result = 0;    ///< When complete: the word before an atomic operation; bytes of a push of differences.
  std::uint32_t state = 0;     ///< The queue's: 0 when it is not in one. See complete().
  Descriptor* next = nullptr;  ///< The queue's.
  std::uint64_t progress = 0;  ///< The queue's.

  /// True when it is not under way. Sees what it did.
  [[nodiscard]] bool complete() const noexcept {
    // Acquire: with its status, result and the data. atomic_ref of const is not in C++20.
    return std::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(state)).load(std::memory_order_acquire) == 0;
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
  static Descriptor lock(int home, std::uint32_t number = 0, LockMode mode = LockMode::exclusive) noexcept;
  static Descriptor unlock(int home, std::uint32_t number = 0) noexcept;
  static Descriptor barrier() noexcept;
  static Descriptor barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept;
  static Descriptor flush() noexcept;
  template <AtomicInteger T>
  static Descriptor fetch_add(GlobalAddress at, T value) noexcept;
  // swap, compare_and_swap, fetch_and, fetch_or, fetch_xor likewise
};

/// Works through descriptors of one window in the order in which they were posted, while the poster computes: a lock,
/// what it protects, and its unlock can be posted at once. Short copies are made by post() itself; what is long, or has
/// to wait, is left to a thread that the window has for this and that starts with the first need of it.
///
/// Owns:    nothing of the caller's: see Descriptor.
/// Threads: one at a time. A window may have any number of queues, and they do not wait for each other.
/// Costs:   posting, polling and completing allocate nothing.
class Queue {
 public:
  /// `completions`, if there is one, is incremented (release) with each descriptor that is complete: one to wait for
  /// several queues. The window must outlive the queue.
  explicit Queue(Window& window, std::atomic<std::uint64_t>* completions = nullptr);
  Queue(Queue&&) = delete;
  ~Queue();  ///< Waits for all that was posted.

  /// Posts them all, in their order. Answers ok, or invalid and posts nothing: one of them is under way or asks for
  /// nothing that there is. Wrong addresses and arguments are told in each descriptor's status.
  Status post(std::span<Descriptor> descriptors) noexcept;
  Status post(Descriptor& descriptor) noexcept { return post(std::span(&descriptor, 1)); }
  /// The oldest complete descriptor that was not answered yet; null when none is. Does not block.
  Descriptor* poll() noexcept;
  /// The same, and waits for one; null when nothing is under way.
  Descriptor* wait() noexcept;
  /// Waits for all. Answers ok, or the first failure since the last call of it.
  Status wait_all() noexcept;

 private:
  class Work;
  std::shared_ptr<Work> work_;
};

}  // namespace tonari
