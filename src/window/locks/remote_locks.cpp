#include "window/locks/remote_locks.hpp"

#include "job/group.hpp"
#include "job/pool.hpp"
#include "window/remote/heads.hpp"

#include <algorithm>

namespace tonari::window {

using fabric::Head;
using fabric::Lane;

void RemoteLock::request(LockMode mode, bool once) noexcept {
  mode_ = mode;
  abandoned_ = false;
  wanted_.store(false, std::memory_order_relaxed);
  outcome_.store(LockOutcomeKind::none, std::memory_order_relaxed);
  token_.fetch_add(1, std::memory_order_relaxed);
  send(once ? LockStepKind::try_lock : LockStepKind::lock);
}

void RemoteLock::abandon() noexcept {
  if (std::exchange(abandoned_, true)) return;
  send(LockStepKind::abandon);
}

void RemoteLock::unlock() noexcept { send(LockStepKind::unlock); }

void RemoteLock::send(LockStepKind kind) noexcept {
  const LockStep step{number_, token_.load(std::memory_order_relaxed), kind, mode_, 0};
  send_queue_.post(home_, head_of(Kind::window_lock, engine_.session().rank(), step, window_), Lane::request);
}

void RemoteLock::take(const LockOutcome& outcome) noexcept {
  if (outcome.token != token_.load(std::memory_order_relaxed)) return;
  if (outcome.kind == LockOutcomeKind::wanted) {
    wanted_.store(true, std::memory_order_relaxed);
  } else if (outcome.kind <= LockOutcomeKind::no_lock) {  // any other kind is malformed: drop it
    outcome_.store(outcome.kind, std::memory_order_release);
  }
}

LockHome::LockHome(fabric::Engine& engine, fabric::SendQueue& send_queue, const Group& group,
                   std::shared_ptr<Mapping> memory, std::uint32_t window, std::uint32_t granule)
    : engine_(engine),
      send_queue_(send_queue),
      group_(group),
      memory_(std::move(memory)),
      layout_(memory_->bytes().data()),
      window_(window),
      granule_(granule),
      position_(job::position_in(group_, engine.session().rank())) {
  layout_.header().holders.fetch_add(1, std::memory_order_relaxed);  // its part holds it now, too
}

LockHome::~LockHome() {
  if (!engine_.session().in_own_process()) return;
  const std::uint64_t bytes = memory_->bytes().size();
  // Acquire and release, as in ~WindowState().
  const bool last = layout_.header().holders.fetch_sub(1, std::memory_order_acq_rel) == 1;
  proxies_.clear();
  memory_.reset();
  if (last) engine_.session().arena().pool().give_back(granule_, bytes);
}

LockHome::Proxy& LockHome::proxy_of(const Name& name) {
  const auto found = proxies_.find(name);
  if (found != proxies_.end()) return found->second;
  const std::size_t ranks = static_cast<std::size_t>(group_.size());
  auto* const memory = reinterpret_cast<LockMemory*>(
      layout_.at(layout_.member(static_cast<std::size_t>(position_)).locks_at + name.first * lock_bytes(ranks)));
  const LockGroup neighbours{&engine_, &group_, engine_.session().rank()};
  return proxies_.emplace(name, Proxy{name, LockAlgorithm<LockGroup>(*memory, group_.size(), name.second, neighbours)})
      .first->second;
}

void LockHome::take(int peer, const LockStep& step) noexcept {
  const int position = job::position_in(group_, peer);
  const Name name{step.number, position};
  const bool begins = step.kind == LockStepKind::lock || step.kind == LockStepKind::try_lock;
  const std::uint32_t locks = layout_.member(static_cast<std::size_t>(position_)).locks;
  if (position < 0 || !engine_.is_remote(peer)) return;  // malformed: drop it
  if (step.number >= locks || (begins && closed_)) {
    if (begins) tell(name, step.token, LockOutcomeKind::no_lock);
    return;
  }
  if (step.mode != LockMode::exclusive && step.mode != LockMode::shared) return;  // malformed: drop it
  Proxy& proxy = proxy_of(name);
  if (begins) {
    if (proxy.state == State::idle) begin(proxy, step);
  } else if (proxy.token == step.token && step.kind == LockStepKind::abandon) {
    abandon(proxy);
  } else if (proxy.token == step.token && step.kind == LockStepKind::unlock) {
    unlock(proxy);
  }
}

void LockHome::begin(Proxy& proxy, const LockStep& step) noexcept {
  proxy.token = step.token;
  proxy.mode = step.mode;
  proxy.told_wanted = false;
  if (step.kind == LockStepKind::lock) {
    set_state(proxy, State::waiting);
    return settle(proxy, proxy.side.request(step.mode));
  }
  const LockAnswer answer = proxy.side.try_lock(step.mode);
  if (answer == LockAnswer::not_held) return tell(proxy.name, proxy.token, LockOutcomeKind::refused);
  settle(proxy, answer);
}

void LockHome::abandon(Proxy& proxy) noexcept {
  if (proxy.state != State::waiting) return;  // it has been told that the lock is granted
  if (proxy.side.abandon()) {
    set_state(proxy, State::idle);
    return tell(proxy.name, proxy.token, LockOutcomeKind::abandoned);
  }
  settle(proxy, proxy.side.step());  // else it is granted soon
}

void LockHome::unlock(Proxy& proxy) noexcept {
  if (proxy.state != State::held) return;  // malformed: drop it
  set_state(proxy, State::idle);
  proxy.side.unlock();
}

void LockHome::settle(Proxy& proxy, LockAnswer answer) noexcept {
  if (answer == LockAnswer::not_held) return;
  set_state(proxy, State::held);
  tell(proxy.name, proxy.token,
       answer == LockAnswer::held ? LockOutcomeKind::granted : LockOutcomeKind::granted_after_death);
}

void LockHome::set_state(Proxy& proxy, State state) noexcept {
  if (proxy.state == State::idle && state != State::idle) active_.push_back(&proxy);
  if (proxy.state != State::idle && state == State::idle) std::erase(active_, &proxy);
  proxy.state = state;
}

void LockHome::tell(const Name& name, std::uint32_t token, LockOutcomeKind kind) noexcept {
  const LockOutcome outcome{name.first, token, kind, {}};
  send_queue_.post(job::rank_at(group_, name.second),
                   head_of(Kind::window_granted, engine_.session().rank(), outcome, window_), Lane::request);
}

bool LockHome::is_to_be_told_wanted(const Proxy& proxy) noexcept {
  return proxy.state == State::held && proxy.mode == LockMode::shared && !proxy.told_wanted && proxy.side.contended();
}

bool LockHome::ready() const noexcept {
  return std::ranges::any_of(active_, [](const Proxy* proxy) {
    return proxy->state == State::waiting ? proxy->side.ready() : is_to_be_told_wanted(*proxy);
  });
}

void LockHome::advance() noexcept {
  for (Proxy* const proxy : active_) {
    if (proxy->state == State::waiting && proxy->side.ready()) settle(*proxy, proxy->side.step());
    if (is_to_be_told_wanted(*proxy)) {
      proxy->told_wanted = true;
      tell(proxy->name, proxy->token, LockOutcomeKind::wanted);
    }
  }
}

void LockHome::bury(int rank) noexcept {
  const int position = job::position_in(group_, rank);
  std::erase_if(active_, [position](Proxy* proxy) {
    if (proxy->name.second != position) return false;
    proxy->state = State::idle;
    proxy->side.bury();
    return true;
  });
}

// Refuses a request for a lock that does not exist (any more).
void LockHomes::refuse(const Head& head) noexcept {
  const auto step = head.as<LockStep>();
  if (step.kind == LockStepKind::unlock || !engine_.is_remote(static_cast<int>(head.source))) return;
  const LockOutcome outcome{step.number, step.token, LockOutcomeKind::no_lock, {}};
  send_queue_.post(static_cast<int>(head.source),
                   head_of(Kind::window_granted, engine_.session().rank(), outcome, head.context), Lane::request);
}

// An unlock lets another proxy advance, so this repeats until nothing changes.
void LockHomes::advance() noexcept {
  const auto is_ready = [](const auto& each) { return each.second->ready(); };
  while (std::ranges::any_of(homes_, is_ready)) {
    for (auto& [number, home] : homes_) home->advance();
  }
  std::erase_if(homes_, [](const auto& each) { return each.second->is_over(); });
  std::size_t active = 0;
  for (const auto& [number, home] : homes_) active += home->active();
  active_.set(active);
}

void LockHomes::retry() noexcept {
  if (active_.is_zero()) return;
  const std::lock_guard guard(mutex_);
  advance();
}

bool LockHomes::held_back() const noexcept {
  if (active_.is_zero()) return false;
  const std::lock_guard guard(mutex_);
  return std::ranges::any_of(homes_, [](const auto& each) { return each.second->ready(); });
}

void LockHomes::died(int rank) noexcept {
  const std::lock_guard guard(mutex_);
  dead_[static_cast<std::size_t>(rank)] = 1;
  for (auto& [number, home] : homes_) home->bury(rank);
  advance();
}

void LockHomes::close(std::uint32_t window) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = homes_.find(window);
  if (found == homes_.end()) return;
  found->second->close();
  advance();
}

}  // namespace tonari::window
