#pragma once

#include "pager/passed_faults.hpp"
#include "pager/tally.hpp"
#include "pager/userfaultfd.hpp"

#include <array>
#include <atomic>
#include <span>

namespace tonari::pager {

/// Where the pager reads the faults that threads pass on to it, and their wishes for room.
///
/// Owns:    nothing: `passed` and `tally` outlive it.
/// Threads: read() and wait() by one; stop() by any.
class FaultInbox {
 public:
  FaultInbox(PassedFaults& passed, const Tally& tally) noexcept : passed_(passed), tally_(tally) {}

  /// Returns the faults that can be read now; empty if there are none.
  std::span<const Fault> read() noexcept;
  /// Waits until there may be faults, or a wish for room. Returns false after stop().
  bool wait() noexcept;
  void stop() noexcept;

 private:
  PassedFaults& passed_;
  const Tally& tally_;
  std::array<Fault, PassedFaults::faults_max> batch_{};
  std::atomic<bool> stopped_{false};  // relaxed: the doorbell publishes it
};

}  // namespace tonari::pager
