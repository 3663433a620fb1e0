#include "window/locks/local_locks.hpp"

#include "base/clock.hpp"
#include "fabric/wait.hpp"
#include "job/group.hpp"

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
  (void)advance();  // if something is granted, it is this request
}

bool LocalLock::try_at_once(LockRequest& request) noexcept {
  const std::lock_guard guard(lock_);
  request.failure = first_ != nullptr ? Status::again : Status::ok;
  if (first_ != nullptr) return false;
  if (holders_ != 0) {
    const bool joins = may_share(request.mode);
    holders_ += joins ? 1 : 0;
    if (!joins) request.failure = Status::again;
    return joins;
  }
  if (remote_) {
    request.once = true;
    *end_ = &request;
    end_ = &request.next;
    (void)advance();
    return false;
  }
  const LockAnswer answer = side_->try_lock(request.mode);
  if (answer == LockAnswer::not_held) return false;
  holders_ = 1;
  held_ = request.mode;
  request.after_death = answer == LockAnswer::held_after_death;
  return true;
}

bool LocalLock::step(const LockRequest& request) noexcept {
  // Acquire, here and in ready(): pairs with (1) and (2).
  if (request.granted.load(std::memory_order_acquire)) return true;
  bool granted = false;
  {
    const std::lock_guard guard(lock_);
    granted = advance();
  }
  if (granted) engine_.wake_self();  // the granted thread of this rank may be asleep
  return request.granted.load(std::memory_order_acquire);
}

bool LocalLock::ready(const LockRequest& request) noexcept {
  if (request.granted.load(std::memory_order_acquire)) return true;
  const std::lock_guard guard(lock_);
  return first_ == &request && asked_ && (remote_ ? remote_->ready() : side_->ready());
}

bool LocalLock::give_up(LockRequest& request) noexcept {
  bool granted = false;
  {
    const std::lock_guard guard(lock_);
    if (request.granted.load(std::memory_order_relaxed)) return false;
    if (remote_ && first_ == &request && asked_) {
      remote_->abandon();
      return false;
    }
    if (first_ == &request && std::exchange(asked_, false)) {
      while (!side_->abandon()) {  // too late, except perhaps for a moment
        const LockAnswer answer = side_->step();
        if (answer == LockAnswer::not_held) continue;
        grant_first(answer == LockAnswer::held_after_death);
        return false;
      }
    }
    remove(request);
    granted = advance();
  }
  if (granted) engine_.wake_self();
  return true;
}

bool LocalLock::unlock() noexcept {
  bool granted = false;
  {
    const std::lock_guard guard(lock_);
    if (holders_ == 0) return false;
    if (--holders_ != 0) return true;
    const bool stays =
        first_ != nullptr && held_ == LockMode::exclusive && first_->mode == LockMode::exclusive && !contended();
    if (stays) {
      grant_first(false);
      granted = true;
    } else {
      remote_ ? remote_->unlock() : side_->unlock();
      granted = advance();
    }
  }
  if (granted) engine_.wake_self();
  return true;
}

// Returns true if another thread of this rank shares the lock, and no other rank waits.
bool LocalLock::may_share(LockMode mode) const noexcept {
  return held_ == LockMode::shared && mode == LockMode::shared && !contended();
}

// Returns true if other ranks wait. For an exclusive remote lock that is unknown, and assumed.
bool LocalLock::contended() const noexcept {
  if (remote_) return held_ == LockMode::exclusive || remote_->wanted();
  return side_->contended();
}

// Grants the lock to the first in the queue, and to the requests after it that may share it, unless other ranks wait.
// Returns true if a request was granted or failed.
bool LocalLock::advance() noexcept {
  bool granted = false;
  while (first_ != nullptr) {
    LockAnswer answer = LockAnswer::held;
    if (holders_ == 0) {
      LockRequest* const asks = first_;
      answer = ask(*asks);
      if (first_ != asks) {  // it has failed, and the next one asks
        granted = true;
        continue;
      }
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

// Asks for the first in the queue, or asks again.
LockAnswer LocalLock::ask(LockRequest& first) noexcept {
  if (remote_) return ask_remote(first);
  return std::exchange(asked_, true) ? side_->step() : side_->request(first.mode);
}

LockAnswer LocalLock::ask_remote(LockRequest& first) noexcept {
  if (!std::exchange(asked_, true)) remote_->request(first.mode, first.once);
  switch (remote_->step()) {
    case LockOutcomeKind::granted: return LockAnswer::held;
    case LockOutcomeKind::granted_after_death: return LockAnswer::held_after_death;
    case LockOutcomeKind::refused: fail_first(Status::again); break;
    case LockOutcomeKind::abandoned: fail_first(Status::timed_out); break;
    case LockOutcomeKind::no_lock: fail_first(Status::bounds); break;
    default:
      if (remote_->is_gone()) fail_first(Status::peer_gone);
  }
  return LockAnswer::not_held;
}

void LocalLock::fail_first(Status failure) noexcept {
  LockRequest& request = *first_;
  asked_ = false;
  remove(request);
  request.failure = failure;
  // (1) Publishes the failure. The request may be destroyed from here on.
  request.granted.store(true, std::memory_order_release);
}

void LocalLock::grant_first(bool after_death) noexcept {
  LockRequest& request = *first_;
  remove(request);
  ++holders_;
  held_ = request.mode;
  request.after_death = after_death;
  // (2) Publishes after_death and the writes of the last holder. The request may be destroyed from here on.
  request.granted.store(true, std::memory_order_release);
}

void LocalLock::remove(LockRequest& request) noexcept {
  LockRequest** at = &first_;
  while (*at != &request) at = &(*at)->next;
  *at = request.next;
  if (end_ == &request.next) end_ = at;
}

// Acquire: pairs with the releases of the state in Parts::give() and WindowState::tell().
PartState Locks::state_of(std::size_t position) const noexcept {
  return (is_remote(position) ? members_.remote(position).state : layout_.member(position).state)
      .load(std::memory_order_acquire);
}

Status Locks::find(int home, std::uint32_t number, LocalLock*& lock) noexcept {
  const int position = job::position_in(members_.group(), home);
  if (position < 0) return Status::bounds;
  const auto index = static_cast<std::size_t>(position);
  const Member& member = layout_.member(index);
  const bool at_remote_home = is_remote(index);
  const std::uint32_t locks = at_remote_home ? members_.remote(index).locks : member.locks;
  if (state_of(index) == PartState::absent || number >= locks) return Status::bounds;
  const std::uint64_t name = name_of(position, number);
  try {
    const std::lock_guard guard(lock_);
    if (at_remote_home) {
      lock = &locks_.try_emplace(name, engine_, send_queue_, window_, home, number).first->second;
    } else {
      auto* const memory = reinterpret_cast<LockMemory*>(
          layout_.at(member.locks_at + number * lock_bytes(static_cast<std::size_t>(members_.group().size()))));
      lock = &locks_.try_emplace(name, engine_, *memory, members_.group(), members_.self(), home)
                  .first->second;  // never moves
    }
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  }
  return Status::ok;
}

Status Locks::find_home(int home, std::uint32_t number, LocalLock*& lock) noexcept {
  const Status status = find(home, number, lock);
  if (status != Status::ok) return status;
  if (!engine_.session().alive(home)) return Status::peer_gone;
  return state_of(static_cast<std::size_t>(job::position_in(members_.group(), home))) == PartState::present
             ? Status::ok
             : Status::bounds;
}

void Locks::take(int home, const LockOutcome& outcome) noexcept {
  const std::lock_guard guard(lock_);
  const auto found = locks_.find(name_of(job::position_in(members_.group(), home), outcome.number));
  if (found != locks_.end()) found->second.take(outcome);
}

// Lets remote ranks get their turn. A thread that takes its lock again and again may be the only one that could receive
// their requests.
void Locks::hear_remote_ranks() noexcept {
  homes_.retry();
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns - heard_ns_.load(std::memory_order_relaxed) < hear_ns) return;
  engine_.progress();
  heard_ns_.store(monotonic_ns(), std::memory_order_relaxed);
}

Status Locks::begin(LockRequest& request, int home, std::uint32_t number, LockMode mode) noexcept {
  if (mode != LockMode::exclusive && mode != LockMode::shared) return Status::invalid;
  const Status status = find_home(home, number, request.lock);
  if (status != Status::ok) return status;
  request.mode = mode;
  request.after_death = false;
  request.failure = Status::ok;
  request.once = false;
  request.granted.store(false, std::memory_order_relaxed);
  request.lock->begin(request);
  return Status::ok;
}

Status Locks::lock(int home, std::uint32_t number, LockMode mode) noexcept {
  LockRequest request;
  const Status status = begin(request, home, number, mode);
  if (status != Status::ok) return status;
  wait_for(request, home);
  return status_of(request);
}

// The lock may become ready before it is granted: this thread then moves it on.
void Locks::wait_for(LockRequest& request, int home) noexcept {
  while (!request.lock->step(request)) {
    fabric::wait_until(
        engine_, [&request] { return request.lock->ready(request); }, job::Wait::lock, home);
  }
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
      wait_for(request, home);
      break;
    }
    fabric::WaitUntil waiting(
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
  if (request.lock->try_at_once(request)) return status_of(request);
  if (request.failure != Status::ok || !request.lock->is_remote()) return Status::again;
  wait_for(request, home);
  return status_of(request);
}

Status Locks::unlock(int home, std::uint32_t number) noexcept {
  LocalLock* lock = nullptr;
  const Status status = find(home, number, lock);
  if (status != Status::ok) return status;
  if (!lock->unlock()) return Status::invalid;
  if (members_.spans_hosts() && home == engine_.session().rank()) hear_remote_ranks();
  return Status::ok;
}

}  // namespace tonari::window
