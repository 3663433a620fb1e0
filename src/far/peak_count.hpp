#pragma once

#include <atomic>
#include <cstdint>

namespace tonari::far {

/// A count, and the most that it has ever been. All relaxed: nothing depends on it.
class PeakCount {
 public:
  void add(std::uint64_t more) noexcept {
    const std::uint64_t now = now_.fetch_add(more, std::memory_order_relaxed) + more;
    for (std::uint64_t seen = peak(); seen < now;) {
      if (peak_.compare_exchange_weak(seen, now, std::memory_order_relaxed)) break;
    }
  }
  void subtract(std::uint64_t less) noexcept { now_.fetch_sub(less, std::memory_order_relaxed); }

  [[nodiscard]] std::uint64_t now() const noexcept { return now_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> now_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace tonari::far
