#include "fabric/progress_lock.hpp"

#include <mutex>

namespace tonari::fabric {

Sleeper* ProgressLock::register_sleeper() noexcept {
  const std::lock_guard guard(sleepers_lock_);
  if (free_.empty()) free_.push_back(&sleepers_.emplace_back());
  Sleeper* sleeper = free_.back();
  free_.pop_back();
  sleeper->woken.store(0, std::memory_order_relaxed);
  waiting_.push_back(sleeper);
  return sleeper;
}

void ProgressLock::unregister_sleeper(Sleeper* sleeper) noexcept {
  const std::lock_guard guard(sleepers_lock_);
  std::erase(waiting_, sleeper);
  free_.push_back(sleeper);
}

void ProgressLock::pass_on_slow() noexcept {
  Sleeper* next = nullptr;
  {
    const std::lock_guard guard(sleepers_lock_);
    if (waiting_.empty()) return;
    next = waiting_.front();
    waiting_.erase(waiting_.begin());
  }
  next->wake();
}

}  // namespace tonari::fabric
