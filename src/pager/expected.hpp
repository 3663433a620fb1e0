#pragma once

#include "pager/page.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace tonari::pager {

/// Ranges of which the program has said that it reads here and there: no streams are looked for in them.
///
/// Threads: any.
/// Costs:   a load where nothing was said.
class ExpectedRandom {
 public:
  static constexpr std::size_t ranges_max = 64;  // more are forgotten, oldest first

  void add(Address start, Address end) noexcept;
  /// Whatever overlaps with it.
  void remove(Address start, Address end) noexcept;
  [[nodiscard]] bool has(Address address) const noexcept;

 private:
  struct Range {
    Address start = 0;
    Address end = 0;
  };
  std::atomic<std::size_t> count_{0};  // relaxed: a hint that is seen late is no harm
  mutable std::mutex mutex_;
  std::array<Range, ranges_max> ranges_{};
};

}  // namespace tonari::pager
