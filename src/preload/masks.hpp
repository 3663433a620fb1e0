#pragma once

#include "preload/unreached.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace tonari::preload {

/// True where the handlers of SIGBUS and SIGSYS serve page faults of the program and of its system calls. A thread that
/// blocks them would be killed at its next fault. Relaxed: set before the first fault.
extern constinit std::atomic<bool> faults_signal;
inline constexpr std::array fault_signals{SIGBUS, SIGSYS};

inline bool serves_faults(int signal) noexcept {
  return std::ranges::find(fault_signals, signal) != fault_signals.end() &&
         faults_signal.load(std::memory_order_relaxed);
}

/// The kernel's set of signals. sigset_t has room for more, which neither the kernel nor libc uses.
inline constexpr std::size_t set_bytes = sizeof(std::uint64_t);

inline void leave_unblocked(sigset_t& set) noexcept {
  for (const int signal : fault_signals) ::sigdelset(&set, signal);
}

/// A set of signals to block. Where the set may be in absent memory, or signals serve faults, it is a local copy, in
/// the latter case without these signals, unless they are to be unblocked.
class Mask {
 public:
  explicit Mask(const sigset_t* set, int how = SIG_BLOCK) noexcept : set_(set) {
    const bool faults = faults_signal.load(std::memory_order_relaxed);
    if (set == nullptr || (!faults && !may_be_unreached())) return;
    std::memcpy(&copy_, set, set_bytes);
    if (faults && how != SIG_UNBLOCK) leave_unblocked(copy_);
    set_ = &copy_;
  }
  Mask(const Mask&) = delete;
  Mask& operator=(const Mask&) = delete;
  [[nodiscard]] const sigset_t* get() const noexcept { return set_; }

 private:
  const sigset_t* set_;
  sigset_t copy_{};
};

}  // namespace tonari::preload
