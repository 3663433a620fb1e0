#pragma once

#include <atomic>
#include <csignal>

namespace tonari::preload {

/// True where the handler of SIGBUS serves page faults. A thread that blocks SIGBUS would be killed at its next fault.
/// Relaxed: set before the first fault.
extern constinit std::atomic<bool> faults_signal;

/// A set of signals to block, without SIGBUS where that serves faults. Reads the set, which may be absent, at once.
class Mask {
 public:
  explicit Mask(const sigset_t* set) noexcept : set_(set) {
    if (set == nullptr || !faults_signal.load(std::memory_order_relaxed) || ::sigismember(set, SIGBUS) != 1) return;
    copy_ = *set;
    ::sigdelset(&copy_, SIGBUS);
    set_ = &copy_;
  }
  Mask(const Mask&) = delete;
  Mask& operator=(const Mask&) = delete;
  [[nodiscard]] const sigset_t* get() const noexcept { return set_; }

 private:
  const sigset_t* set_;
  sigset_t copy_;
};

}  // namespace tonari::preload
