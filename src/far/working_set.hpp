#pragma once

#include "pager/statistics.hpp"

#include <cstdint>

namespace tonari::far {

/// Notices that the pages that a process uses again and again do not fit into its local memory.
///
///   each second: do threads get on only from page to page, for more than half of the time?
///     no:  the observation begins anew
///     yes: has it lasted 3 s, have more bytes come than the limit allows at once, and has each page that came, on
///          average, come three times? Then the working set does not fit.
///
/// A program that streams once or twice over its memory waits, but its pages come only so often. The working set is
/// estimated as the pages that came during the observation, and all local ones: so much is enough, and less may be.
///
/// Threads: one.
class WorkingSet {
 public:
  struct Finding {
    bool begins_anew = false;          ///< Call Pager::count_anew().
    std::uint64_t wanted_bytes = 0;    ///< A limit into which the working set fits; 0: nothing is known.
    std::uint64_t wanted_percent = 0;  ///< The same as a share of the touched memory, at most 100.
  };
  /// Call it often. Looks at the statistics once per second. `limit_bytes` is the present limit.
  [[nodiscard]] Finding look(std::uint64_t now_ns, const pager::Statistics& now, std::uint64_t limit_bytes) noexcept;

 private:
  static constexpr std::uint64_t period_ns = 1'000'000'000;
  static constexpr std::uint64_t observation_ns_min = 3 * period_ns;
  static constexpr std::uint64_t times_again_min = 2;

  struct Seen {
    std::uint64_t at_ns = 0;
    std::uint64_t waited_ns = 0;
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_in_again = 0;
  };
  Seen last_{};
  Seen start_{};  // of the observation
};

}  // namespace tonari::far
