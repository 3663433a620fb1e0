#pragma once

#include <atomic>
#include <csignal>

namespace tonari::preload {

/// True where the handler of SIGBUS serves page faults. A thread that blocks SIGBUS would be killed at its next fault.
/// Relaxed: set before the first fault.
extern constinit std::atomic<bool> faults_signal;

/// A local copy of a set of signals: the set may be in absent memory. If it is to be blocked, the copy is without
/// SIGBUS where that serves faults.
class Mask {
 public:
  explicit Mask(const sigset_t* set, int how = SIG_BLOCK) noexcept : is_given_(set != nullptr) {
    if (!is_given_) return;
    copy_ = *set;
    if (how != SIG_UNBLOCK && faults_signal.load(std::memory_order_relaxed)) ::sigdelset(&copy_, SIGBUS);
  }
  Mask(const Mask&) = delete;
  Mask& operator=(const Mask&) = delete;
  [[nodiscard]] const sigset_t* get() const noexcept { return is_given_ ? &copy_ : nullptr; }

 private:
  bool is_given_;
  sigset_t copy_;
};

}  // namespace tonari::preload
