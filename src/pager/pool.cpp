#include "pager/pool.hpp"

#include <algorithm>

namespace tonari::pager {

Pool::Pool(std::size_t first, std::size_t end) : first_(first), records_(end - first) {}

void Pool::give_back(Buffer buffer, bool prefaulted) noexcept {
  at(buffer) = {prefaulted ? State::prefaulted : State::empty, nullptr, 0};
}

void Pool::keep(Buffer buffer, PolicyEntry& owner, Kind kind) noexcept {
  at(buffer) = {state_of(kind), &owner, ++time_};
}

void Pool::take_back(Buffer buffer) noexcept { at(buffer) = {State::taken, nullptr, 0}; }

std::optional<Pool::Kept> Pool::oldest(Kind kind) noexcept {
  Record* found = nullptr;
  for (Record& each : records_) {
    if (each.state == state_of(kind) && (found == nullptr || each.since < found->since)) found = &each;
  }
  if (found == nullptr) return std::nullopt;
  found->since = ++time_;
  return Kept{Buffer{static_cast<std::uint32_t>(first_ + static_cast<std::size_t>(found - records_.data()))},
              found->owner};
}

std::uint64_t Pool::age(Kind kind) const noexcept {
  std::uint64_t result = 0;
  for (const Record& each : records_) {
    if (each.state == state_of(kind)) result = std::max(result, time_ - each.since);
  }
  return result;
}

std::optional<Buffer> Pool::take(State state) noexcept {
  const auto found = std::ranges::find(records_, state, &Record::state);
  if (found == records_.end()) return std::nullopt;
  found->state = State::taken;
  return Buffer{static_cast<std::uint32_t>(first_ + static_cast<std::size_t>(found - records_.begin()))};
}

std::size_t Pool::count(State state) const noexcept {
  return static_cast<std::size_t>(std::ranges::count(records_, state, &Record::state));
}

}  // namespace tonari::pager
