#pragma once

#include "base/clock.hpp"

#include <sched.h>

#include <atomic>

namespace tonari {

/// A lock for critical sections of a few instructions that make no system call and do not touch user memory. Works in
/// memory shared by processes, and with std::lock_guard. One byte, zero when free.
///
/// Threads: the thread that locked must unlock. Not recursive, not fair.
/// Costs:   one read-modify-write when free. A waiting thread yields its core after spins_max reads, because the holder
///          may have lost its own core: it is common to have more threads than cores.
class SpinLock {
 public:
  void lock() noexcept {
    while (!try_lock()) wait_until_free();
  }
  [[nodiscard]] bool try_lock() noexcept { return !locked_.exchange(true, std::memory_order_acquire); }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int spins_max = 100;

  [[gnu::cold]] void wait_until_free() noexcept {
    for (int spins = 0; locked_.load(std::memory_order_relaxed); ++spins) {
      if (spins < spins_max) {
        cpu_relax();
      } else {
        ::sched_yield();
      }
    }
  }

  std::atomic<bool> locked_{false};
};
static_assert(std::atomic<bool>::is_always_lock_free && sizeof(SpinLock) == 1);

}  // namespace tonari
