#pragma once

#include "base/lock.hpp"
#include "fabric/waitable.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

namespace tonari::fabric {

/// The conditions for which threads of a rank sleep beside the holder of its progress lock. The holder checks them in
/// each poll.
///
/// Threads: any.
class Watches {
 public:
  /// Has `sleeper` woken when `what` is ready. Returns false if it is ready already, or if there is no memory.
  bool add(const Watched& what, Sleeper& sleeper) noexcept;
  /// Does nothing if `what` is not watched.
  void remove(const Watched& what) noexcept;

  /// Wakes the threads whose conditions are ready.
  void wake_ready() noexcept;
  /// The same, cheaper if there are no conditions. Called by the holder of the progress lock.
  void wake_ready_if_any() noexcept {
    if (count_.load(std::memory_order_relaxed) != 0) wake_ready();
  }

 private:
  struct Watch {
    const Watched* what;
    Sleeper* sleeper;
  };
  SpinLock lock_;  // guards the next
  std::vector<Watch> watches_;
  std::atomic<std::uint32_t> count_{0};  // relaxed: a thread that raises it looks again before it sleeps
};

}  // namespace tonari::fabric
