#include "far/working_set.hpp"

#include <algorithm>

namespace tonari::far {

WorkingSet::Finding WorkingSet::look(std::uint64_t now_ns, const pager::Statistics& now,
                                     std::uint64_t limit_bytes) noexcept {
  if (now_ns - last_.at_ns < period_ns) return {};
  const Seen seen{now_ns, now.wait_ns + now.short_run_ns, now.bytes_in, now.bytes_in_again};
  const bool waits = 2 * (seen.waited_ns - last_.waited_ns) > now_ns - last_.at_ns;
  last_ = seen;
  if (!waits) {
    start_ = seen;
    return {.begins_anew = true};
  }
  const std::uint64_t again = seen.bytes_in_again - start_.bytes_in_again;
  const std::uint64_t distinct = seen.bytes_in - start_.bytes_in - again;
  const bool is_long = now_ns - start_.at_ns >= observation_ns_min && distinct + again >= limit_bytes;
  if (!is_long || again < times_again_min * distinct) return {};
  const std::uint64_t set = std::min(now.touched_bytes, limit_bytes + distinct);
  const std::uint64_t wanted = set + set / 8;  // room is made before the limit is reached, and buffers need some
  const std::uint64_t touched = std::max<std::uint64_t>(now.touched_bytes, 1);
  return {.wanted_bytes = wanted, .wanted_percent = std::min<std::uint64_t>(wanted * 100 / touched + 1, 100)};
}

}  // namespace tonari::far
