#pragma once

#include "preload/system_calls.hpp"

#include <csignal>
#include <cstdint>

namespace tonari::preload {

/// Blocks all signals of the calling thread while it lives.
class WithoutSignals {
 public:
  WithoutSignals() noexcept : WithoutSignals(~0ULL) {}
  /// Leaves SIGBUS and SIGSYS as they are: the thread may meet page faults that their handlers serve.
  static WithoutSignals but_faults() noexcept { return WithoutSignals(~(1ULL << (SIGBUS - 1) | 1ULL << (SIGSYS - 1))); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals() { (void)system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_); }

 private:
  explicit WithoutSignals(std::uint64_t blocked) noexcept {
    (void)system_call(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before_, sizeof before_);
  }

  std::uint64_t before_ = 0;  // the kernel's mask: one bit per signal
};

/// A lock that sleeps on a futex. A forked child constructs it anew, or does not use it.
class Lock {
 public:
  void lock() noexcept {
    std::uint32_t seen = is_free;
    if (state_.compare_exchange_strong(seen, is_held, std::memory_order_acquire)) return;  // (1) pairs with (2)
    while (state_.exchange(has_sleepers, std::memory_order_acquire) != is_free) {
      wait_on(state_, has_sleepers, With::threads);
    }
  }
  void unlock() noexcept {
    if (state_.exchange(is_free, std::memory_order_release) == has_sleepers) wake(state_, 1, With::threads);  // (2)
  }

 private:
  enum : std::uint32_t { is_free, is_held, has_sleepers };
  std::atomic<std::uint32_t> state_{is_free};
};

/// Holds `lock` with all signals blocked. A handler may unmap memory, which is a plain system call without this
/// library, and must not wait for the thread that it interrupts.
class Guard {
 public:
  explicit Guard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { lock_.unlock(); }

 private:
  WithoutSignals without_signals_;
  Lock& lock_;
};

}  // namespace tonari::preload
