#include "pager/requests.hpp"

#include "base/futex.hpp"

#include <algorithm>
#include <span>

namespace tonari::pager {

bool Requests::add(const Request& request) noexcept {
  {
    const std::lock_guard guard(mutex_);
    if (stopped_) return false;
    const std::span waiting(requests_.data(), count_);
    const auto same = std::ranges::find_if(waiting, [&](const Request& each) {
      return each.region == request.region && each.block == request.block &&
             (each.what != Request::What::page_ahead || each.page == request.page);
    });
    if (same != waiting.end()) {
      if (request.what == Request::What::block) *same = request;
      return true;
    }
    if (count_ == requests_max) return false;
    request.region->users.fetch_add(1, std::memory_order_relaxed);  // the caller is a user, too, so the region stays
    requests_[count_++] = request;
    if (asleep_ == 0) return true;
  }
  wake_one();
  return true;
}

void Requests::ask_for_room() noexcept {
  {
    const std::lock_guard guard(mutex_);
    room_wanted_ = true;
    if (asleep_ == 0) return;
  }
  wake_one();
}

void Requests::stop() noexcept {
  {
    const std::lock_guard guard(mutex_);
    stopped_ = true;
  }
  ring_doorbell(doorbell_);
}

Requests::Work Requests::next(std::chrono::milliseconds patience) noexcept {
  std::unique_lock lock(mutex_);
  while (patience.count() > 0 && count_ == 0 && !room_wanted_ && !stopped_) {
    const std::uint32_t seen =
        // relaxed: the lock orders it, because the doorbell is rung after the change
        doorbell_.load(std::memory_order_relaxed);
    ++asleep_;
    lock.unlock();
    futex_wait(doorbell_, seen, patience);
    lock.lock();
    --asleep_;
    if (patience < forever) break;
  }
  room_wanted_ = false;
  if (auto urgent = take(true)) return {urgent, false};
  if (auto any = take(false)) return {any, false};
  return {std::nullopt, stopped_};
}

void Requests::wake_one() noexcept {
  doorbell_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the lock publishes the change
  futex_wake(doorbell_, 1);
}

std::optional<Request> Requests::take(bool waited_for) noexcept {
  const auto end = requests_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto found = std::find_if(
      requests_.begin(), end, [&](const Request& each) { return !waited_for || each.what == Request::What::block; });
  if (found == end) return std::nullopt;
  const Request request = *found;
  std::move(found + 1, end, found);
  --count_;
  return request;
}

}  // namespace tonari::pager
