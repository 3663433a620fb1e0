#include "window/locks.hpp"

#include "window/waiting.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace tonari::window {

void LocalLock::begin(LockRequest& request) noexcept {
  const std::lock_guard guard(lock_);
  request.next = nullptr;
  *end_ = &request;
  end_ = &request.next;
  (void)advance();  // if it grants something, that is this
}

bool LocalLock::try_at_once(LockRequest& request) noexcept {
  const std::lock_guard guard(lock_);
  if (first_ != nullptr) return false;
  if (holders_ != 0) {
    const bool joins = may_share(request.mode);
    holders_ += joins ? 1 : 0;
    return joins;
  }
  const LockAnswer answer = side_.try_lock(request.mode);
  if (answer == LockAnswer::not_held) return false;
  holders_ = 1;
  held_ = request.mode;
  request.after_death = answer == LockAnswer::held_after_death;
  return true;
}

bool LocalLock::step(const LockRequest& request) noexcept {
  if (request.granted.load(std::memory_order_acquire)) return true;
  bool granted = false;
  {
    const std::lock_guard guard(lock_);
    granted = advance();
  }
  if (granted) engine_.rouse();  // perhaps to another thread of this rank, which may sleep until then
  return request.granted.load(std::memory_order_acquire);
}

bool LocalLock::ready(const LockRequest& request) noexcept {
  if (request.granted.load(std::memory_order_acquire)) return true;
  const std::lock_guard guard(lock_);
  return first_ == &request && asked_ && side_.ready();
}

bool LocalLock::give_up(LockRequest& request) noexcept {
  bool granted = false;
  {
    const std::lock_guard guard(lock_);
    if (request.granted.load(std::memory_order_relaxed)) return false;
    if (first_ == &request && std::exchange(asked_, false)) {
      while (!side_.abandon()) {  // too late, but for a moment perhaps
        const LockAnswer answer = side_.step();
        if (answer == LockAnswer::not_held) continue;
        grant_first(answer == LockAnswer::held_after_death);
        return false;
      }
    }
    remove(request);
    granted = advance();
  }
  if (granted) engine_.rouse();
  return true;
}

bool LocalLock::unlock() noexcept {
  bool granted = false;
  {
    const std::lock_guard guard(lock_);
    if (holders_ == 0) return false;
    if (--holders_ != 0) return true;
    const bool stays =
        first_ != nullptr && held_ == LockMode::exclusive && first_->mode == LockMode::exclusive && !side_.contended();
    if (stays) {
      grant_first(false);
      granted = true;
    } else {
      side_.unlock();
      granted = advance();
    }
  }
  if (granted) engine_.rouse();
  return true;
}

// Another thread of this rank has it, and no other rank waits.
bool LocalLock::may_share(LockMode mode) const noexcept {
  return held_ == LockMode::shared && mode == LockMode::shared && !side_.contended();
}

// Gives the lock to the first of the queue, and to those behind it that may share it, as far as others leave it. True
// if it did.
bool LocalLock::advance() noexcept {
  bool granted = false;
  while (first_ != nullptr) {
    LockAnswer answer = LockAnswer::held;
    if (holders_ == 0) {
      answer = std::exchange(asked_, true) ? side_.step() : side_.request(first_->mode);
      if (answer == LockAnswer::not_held) break;
      asked_ = false;
    } else if (!may_share(first_->mode)) {
      break;
    }
    grant_first(answer == LockAnswer::held_after_death);
    granted = true;
  }
  return granted;
}

void LocalLock::grant_first(bool after_death) noexcept {
  LockRequest& request = *first_;
  remove(request);
  ++holders_;
  held_ = request.mode;
  request.after_death = after_death;
  request.granted.store(true, std::memory_order_release);  // it may be gone from here on
}

void LocalLock::remove(LockRequest& request) noexcept {
  LockRequest** at = &first_;
  while (*at != &request) at = &(*at)->next;
  *at = request.next;
  if (end_ == &request.next) end_ = at;
}

Status Locks::find(int home, std::uint32_t number, LocalLock*& lock) noexcept {
  const int position = group_.position(home);
  if (position < 0) return Status::bounds;
  const Member& member = layout_.member(static_cast<std::size_t>(position));
  if (member.state.load(std::memory_order_acquire) == PartState::absent || number >= member.locks) {
    return Status::bounds;
  }
  auto* const memory = reinterpret_cast<LockMemory*>(
      layout_.at(member.locks_at + number * lock_bytes(static_cast<std::size_t>(group_.size()))));
  const std::uint64_t name = static_cast<std::uint64_t>(position) << 32 | number;
  try {
    const std::lock_guard guard(lock_);
    lock = &locks_
                .try_emplace(name, engine_, *memory, group_, self_)  // stays where it is
                .first->second;
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  return Status::ok;
}

Status Locks::find_home(int home, std::uint32_t number, LocalLock*& lock) noexcept {
  const Status status = find(home, number, lock);
  if (status != Status::ok) return status;
  if (!engine_.session().alive(home)) return Status::peer_gone;
  const Member& member = layout_.member(static_cast<std::size_t>(group_.position(home)));
  return member.state.load(std::memory_order_acquire) == PartState::present ? Status::ok : Status::bounds;
}

Status Locks::begin(LockRequest& request, int home, std::uint32_t number, LockMode mode) noexcept {
  if (mode != LockMode::exclusive && mode != LockMode::shared) return Status::invalid;
  const Status status = find_home(home, number, request.lock);
  if (status != Status::ok) return status;
  request.mode = mode;
  request.after_death = false;
  request.granted.store(false, std::memory_order_relaxed);
  request.lock->begin(request);
  return Status::ok;
}

Status Locks::lock(int home, std::uint32_t number, LockMode mode) noexcept {
  LockRequest request;
  const Status status = begin(request, home, number, mode);
  if (status != Status::ok) return status;
  // What it waits for may become ready without being granted yet: then this thread moves it on.
  while (!request.lock->step(request)) {
    wait_until(
        engine_, [&request] { return request.lock->ready(request); }, job::Wait::lock, home);
  }
  return status_of(request);
}

Status Locks::lock_for(std::chrono::nanoseconds limit, int home, std::uint32_t number) noexcept {
  const std::uint64_t now_ns = monotonic_ns();
  const auto limit_ns = static_cast<std::uint64_t>(std::max(limit, std::chrono::nanoseconds(0)).count());
  LockRequest request;
  const Status status = begin(request, home, number, LockMode::exclusive);
  if (status != Status::ok) return status;
  while (!request.lock->step(request)) {
    if (monotonic_ns() - now_ns >= limit_ns) {
      if (request.lock->give_up(request)) return Status::timed_out;
      break;
    }
    WaitUntil waiting(
        engine_, [&request] { return request.lock->ready(request); }, job::Wait::lock, home, now_ns + limit_ns);
    engine_.wait(waiting);
  }
  return status_of(request);
}

Status Locks::try_lock(int home, std::uint32_t number, LockMode mode) noexcept {
  if (mode != LockMode::exclusive && mode != LockMode::shared) return Status::invalid;
  LockRequest request;
  const Status status = find_home(home, number, request.lock);
  if (status != Status::ok) return status;
  request.mode = mode;
  return request.lock->try_at_once(request) ? status_of(request) : Status::again;
}

Status Locks::unlock(int home, std::uint32_t number) noexcept {
  LocalLock* lock = nullptr;
  const Status status = find(home, number, lock);
  if (status != Status::ok) return status;
  return lock->unlock() ? Status::ok : Status::invalid;
}

}  // namespace tonari::window
