#pragma once

#include "pager/page.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace tonari::pager {

/// Ranges that the program accesses randomly, as it has said by a hint. The pager looks for no streams there.
///
/// Threads: any.
/// Costs:   one load if there are no such ranges.
class ExpectedRandom {
 public:
  static constexpr std::size_t ranges_max = 64;  // beyond that, the oldest is forgotten

  void add(Address start, Address end) noexcept;
  /// Removes all ranges that overlap this one.
  void remove(Address start, Address end) noexcept;
  [[nodiscard]] bool has(Address address) const noexcept;

 private:
  struct Range {
    Address start = 0;
    Address end = 0;
  };
  std::atomic<std::size_t> count_{0};  // relaxed: it does no harm if a hint is seen late
  mutable std::mutex mutex_;
  std::array<Range, ranges_max> ranges_{};
};

}  // namespace tonari::pager
