#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tonari::fabric {

/// How long a waiting thread polls before it sleeps. Short if there are more ranks than cores, since the rank for which
/// it waits may need its core.
///
/// Threads: the holder of the progress lock calls spins() and adapt(), any thread the rest.
class SpinLimits {
 public:
  explicit SpinLimits(bool shared_cores) noexcept
      : shared_cores_(shared_cores),
        spins_min_(shared_cores ? 2 : 4000),
        spins_(spins_min_),
        yields_(shared_cores ? 400 : 50) {}

  /// Whether this host has more ranks than cores.
  [[nodiscard]] bool shared_cores() const noexcept { return shared_cores_; }
  /// Number of polls before the thread yields its core between two polls.
  [[nodiscard]] std::uint32_t spins() const noexcept { return spins_; }
  [[nodiscard]] std::uint32_t spins_min() const noexcept { return spins_min_; }
  /// Number of these polls before the thread sleeps.
  [[nodiscard]] std::uint32_t yields() const noexcept { return yields_; }

  /// Call after a sleep that a ring has ended. Two ranks that reply to each other could each fall asleep while the
  /// other is being woken, and so on forever, since waking a core takes as long as spinning or longer. So after a short
  /// sleep this rank spins longer, until a sleep is long again.
  void adapt(std::chrono::nanoseconds slept) noexcept {
    constexpr std::chrono::milliseconds short_sleep_max{10};
    constexpr std::uint32_t growth_max = 32;
    if (shared_cores_) return;
    spins_ = slept > short_sleep_max ? spins_min_ : std::min(2 * spins_, growth_max * spins_min_);
  }

 private:
  bool shared_cores_;
  std::uint32_t spins_min_;
  std::uint32_t spins_;
  std::uint32_t yields_;
};

}  // namespace tonari::fabric
