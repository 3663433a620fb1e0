#include "pager/expected.hpp"

#include <algorithm>

namespace tonari::pager {

void ExpectedRandom::add(Address start, Address end) noexcept {
  remove(start, end);
  const std::lock_guard guard(mutex_);
  std::size_t count = count_.load(std::memory_order_relaxed);
  if (count == ranges_max) {
    std::shift_left(ranges_.begin(), ranges_.end(), 1);
    --count;
  }
  ranges_[count] = {start, end};
  count_.store(count + 1, std::memory_order_relaxed);
}

void ExpectedRandom::remove(Address start, Address end) noexcept {
  const std::lock_guard guard(mutex_);
  const auto last = ranges_.begin() + static_cast<std::ptrdiff_t>(count_.load(std::memory_order_relaxed));
  const auto kept =
      std::remove_if(ranges_.begin(), last, [&](const Range& each) { return each.start < end && start < each.end; });
  count_.store(static_cast<std::size_t>(kept - ranges_.begin()), std::memory_order_relaxed);
}

bool ExpectedRandom::has(Address address) const noexcept {
  if (count_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard guard(mutex_);
  const auto last = ranges_.begin() + static_cast<std::ptrdiff_t>(count_.load(std::memory_order_relaxed));
  return std::any_of(ranges_.begin(), last,
                     [&](const Range& each) { return each.start <= address && address < each.end; });
}

}  // namespace tonari::pager
