#pragma once

#include "preload/unreached.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace tonari::preload {

/// True where the handler of SIGBUS serves page faults. A thread that blocks SIGBUS would be killed at its next fault.
/// Relaxed: set before the first fault.
extern constinit std::atomic<bool> faults_signal;

/// The kernel's set of signals. sigset_t has room for more, which neither the kernel nor libc uses.
inline constexpr std::size_t set_bytes = sizeof(std::uint64_t);

/// A set of signals to block. Where the set may be in absent memory, or SIGBUS serves faults, it is a local copy, in
/// the latter case without SIGBUS, unless it is to be unblocked.
class Mask {
 public:
  explicit Mask(const sigset_t* set, int how = SIG_BLOCK) noexcept : set_(set) {
    const bool faults = faults_signal.load(std::memory_order_relaxed);
    if (set == nullptr || (!faults && !may_be_unreached())) return;
    std::memcpy(&copy_, set, set_bytes);
    if (faults && how != SIG_UNBLOCK) ::sigdelset(&copy_, SIGBUS);
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
