#pragma once

#include <atomic>
#include <cstdint>

// Counts the entries that searches and waits look at. Tests compare them with the number of messages, and so find code
// whose work grows with the number of messages or operations that are outstanding, whatever the machine's speed.
namespace tonari::message {

#ifdef NDEBUG
inline constexpr bool looks_are_counted = false;
#else
inline constexpr bool looks_are_counted = true;
#endif

/// A count for all ranks that are threads of this process. Only builds with assertions count.
///
/// Threads: any.
/// Costs:   nothing in builds that do not count.
class alignas(64) LookCount {
 public:
  void add(std::uint64_t count = 1) noexcept {
    if constexpr (looks_are_counted) count_.fetch_add(count, std::memory_order_relaxed);  // orders nothing
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
};

inline LookCount queue_looks;      ///< At posted receives and unexpected messages, by searches of their queues.
inline LookCount operation_looks;  ///< At operations under way, by waits, tests and retries.
inline LookCount wait_rounds;  ///< Rounds of waits and retries. Each looks at a few operations, however many there are.

}  // namespace tonari::message
