#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tonari::share {

/// Pages to fetch besides the page of a fault: `count` pages at distances of `step`.
struct Ahead {
  std::int64_t step = 1;
  std::size_t count = 0;
};

/// Recognises faults that follow each other at a constant distance, and then fetches more and more pages ahead.
///
/// Threads: the fault thread.
class Streams {
 public:
  Ahead fault(std::uint64_t page) noexcept {
    const auto at = static_cast<std::int64_t>(page);
    Stream* found = find([at](const Stream& each) { return at == each.last + each.step; });
    if (found != nullptr) {
      found->ahead = std::min<std::size_t>(std::max<std::size_t>(2 * found->ahead, 2), ahead_max);
    } else {
      found = find([at](const Stream& each) { return at != each.last && std::abs(at - each.last) <= step_max; });
      if (found == nullptr) found = oldest();
      found->step =
          found->used != 0 && at != found->last && std::abs(at - found->last) <= step_max ? at - found->last : 1;
      found->ahead = 0;
    }
    found->used = ++clock_;
    found->last = at + found->step * static_cast<std::int64_t>(found->ahead);
    return {found->step, found->ahead};
  }

 private:
  static constexpr std::int64_t step_max = 64;
  static constexpr std::size_t ahead_max = 31;

  struct Stream {
    std::int64_t last = 0;  // the last page that was fetched
    std::int64_t step = 1;
    std::size_t ahead = 0;
    std::uint64_t used = 0;  // 0: never
  };
  template <class Is>
  Stream* find(Is is) noexcept {
    const auto found = std::ranges::find_if(streams_, [&](const Stream& each) { return each.used != 0 && is(each); });
    return found == streams_.end() ? nullptr : &*found;
  }
  Stream* oldest() noexcept { return &*std::ranges::min_element(streams_, {}, &Stream::used); }

  std::array<Stream, 8> streams_{};
  std::uint64_t clock_ = 0;
};

}  // namespace tonari::share
