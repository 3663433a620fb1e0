#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tonari::pager {

/// Measures how soon threads need their next page after they got one.
///
/// Threads: any. Two threads that share an entry may lose a measurement, or have it counted twice.
class Pace {
 public:
  /// Two wake-ups between processors take up to 40 us on virtual machines. A thread that runs no longer than this until
  /// its next fault has hardly run at all.
  static constexpr std::uint64_t run_ns_max = 50'000;

  void got_page(std::uint32_t thread, std::uint64_t now_ns) noexcept {
    Entry& entry = at(thread);
    entry.thread.store(thread, std::memory_order_relaxed);
    entry.since_ns.store(now_ns, std::memory_order_relaxed);
  }
  /// Returns the time since the thread got its last page if that is at most run_ns_max, otherwise 0.
  [[nodiscard]] std::uint64_t wants_page(std::uint32_t thread, std::uint64_t now_ns) noexcept {
    Entry& entry = at(thread);
    if (entry.thread.load(std::memory_order_relaxed) != thread) return 0;
    const std::uint64_t since_ns = entry.since_ns.load(std::memory_order_relaxed);
    entry.since_ns.store(0, std::memory_order_relaxed);
    return since_ns != 0 && since_ns <= now_ns && now_ns - since_ns <= run_ns_max ? now_ns - since_ns : 0;
  }

 private:
  // Relaxed: a statistic.
  struct Entry {
    std::atomic<std::uint32_t> thread{0};
    std::atomic<std::uint64_t> since_ns{0};
  };
  static constexpr std::size_t entries = 64;
  [[nodiscard]] Entry& at(std::uint32_t thread) noexcept { return entries_[thread % entries]; }

  std::array<Entry, entries> entries_{};
};

}  // namespace tonari::pager
