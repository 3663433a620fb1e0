#include "window/window_runtime.hpp"

#include "window/local/assisted_copy.hpp"
#include "window/remote/heads.hpp"

#include <sched.h>

#include <mutex>
#include <utility>

namespace tonari::window {

using fabric::Head;

WindowRuntime& WindowRuntime::of(job::Session& session) {
  fabric::Engine& engine = fabric::Engine::of(session);
  return engine.handler<WindowRuntime>(fabric::Protocol::window,
                                       [&engine] { return std::make_unique<WindowRuntime>(engine); });
}

void WindowRuntime::publish(const std::shared_ptr<WindowState>& state) {
  const std::lock_guard guard(known_lock_);
  known_.emplace(state->number(), Known{state.get(), 0});
}

bool WindowRuntime::is_known(std::uint32_t window) noexcept {
  const std::lock_guard guard(known_lock_);
  return known_.contains(window);
}

void WindowRuntime::remove(const WindowState& state) noexcept {
  for (;; ::sched_yield()) {
    const std::lock_guard guard(known_lock_);
    const auto found = known_.find(state.number());
    if (found == known_.end() || found->second.state != &state) return;
    if (found->second.users != 0) continue;  // a request is being served
    known_.erase(found);
    return;
  }
}

void WindowRuntime::receive(std::span<const Head> heads) noexcept {
  const auto ranks = static_cast<std::uint32_t>(engine_.session().size());
  for (const Head& head : heads) {
    if (head.source < ranks) receive(head);  // otherwise malformed: drop it
  }
}

void WindowRuntime::receive(const Head& head) noexcept {
  const int peer = static_cast<int>(head.source);
  switch (head.kind.to<Kind>()) {
    case Kind::window_join:
    case Kind::window_made:
    case Kind::window_told:
    case Kind::window_ready: rendezvous_.receive(head); break;
    case Kind::window_access:
    case Kind::window_push: receive_request(head); break;
    case Kind::window_help:
      if (!engine_.is_remote(peer)) target_.receive(head);  // otherwise malformed: drop it
      break;
    case Kind::window_done:
    case Kind::window_data: origin_.requests().receive(head); break;
    case Kind::window_returned: given_keys_.returned(head.context, peer); break;
    case Kind::window_freed: with(head.context, [peer](WindowState& state) { state.take_freed(peer); }); break;
    case Kind::window_met:
      with(head.context, [&](WindowState& state) { state.barrier().take(peer, head.as<Met>()); });
      break;
    case Kind::window_lock: receive_lock(head); break;
    case Kind::window_granted:
      with(head.context, [&](WindowState& state) { state.locks().take(peer, head.as<LockOutcome>()); });
      break;
    default:  // malformed: drop it
      if (head.kind.has_tail()) engine_.give_back(peer, head.as<fabric::Tail>().place);
      break;
  }
}

// Serves a request from another host at once if it touches no program's memory: only the owner can serve it. A relay
// may touch other ranks' program memory, and giving a key takes long.
void WindowRuntime::receive_request(const Head& head) noexcept {
  bool served = false;
  if (engine_.is_remote(static_cast<int>(head.source))) {
    WindowState* const state = use(head.context);
    const Service service = head.as<ServiceRequest>().service;
    const bool may_wait =
        service == Service::relay || service == Service::key || (state && state->parts().own_in_program());
    if (state == nullptr || !may_wait) served = target_.serve(state, head);
    if (state != nullptr) leave(head.context);
  }
  if (!served) target_.receive(head);
}

void WindowRuntime::receive_lock(const Head& head) noexcept {
  if (!engine_.is_remote(static_cast<int>(head.source))) return;  // malformed: drop it
  lock_homes_.receive(head, [&] {
    std::unique_ptr<LockHome> home;
    with(head.context, [&home](const WindowState& state) { home = state.make_lock_home(); });
    return home;
  });
}

WindowState* WindowRuntime::use(std::uint32_t window) noexcept {
  const std::lock_guard guard(known_lock_);
  const auto found = known_.find(window);
  if (found == known_.end()) return nullptr;
  ++found->second.users;
  return found->second.state;
}

void WindowRuntime::leave(std::uint32_t window) noexcept {
  const std::lock_guard guard(known_lock_);
  --known_.find(window)->second.users;  // it stays as long as it has users
}

void WindowRuntime::run_deferred_work() noexcept {
  Head request;
  while (target_.next(request)) {
    WindowState* const state = use(request.context);
    bool is_more = false;
    if (request.kind == Kind::window_help) {
      is_more = help(engine_, state, request);
    } else {
      is_more = !target_.serve(state, request);
    }
    if (state != nullptr) leave(request.context);
    if (is_more) return target_.receive(request);  // a waiting thread checks whether it must go on
  }
}

void WindowRuntime::retry() noexcept {
  send_queue_.retry();
  lock_homes_.retry();
}

void WindowRuntime::died(int rank) noexcept {
  left(rank);
  lock_homes_.died(rank);
}

void WindowRuntime::left(int rank) noexcept {
  gone_[static_cast<std::size_t>(rank)].store(true, std::memory_order_release);
  origin_.requests().end_requests_to(rank);
}

// A head to a dead rank is dropped.
void WindowRuntime::send(int peer, const Head& head) {
  struct Sending {
    fabric::Engine& engine;
    int peer;
    const Head& head;

    fabric::Step step() noexcept {
      return engine.send(peer, head, fabric::Lane::request) == Status::again ? fabric::Step::retry : fabric::Step::done;
    }
    [[nodiscard]] bool ready() const noexcept { return false; }
    bool attach(fabric::Sleeper*) noexcept { return true; }
    void slow() noexcept { engine.tell_long_wait(job::Wait::room, peer, -1); }
  } sending{engine_, peer, head};
  engine_.wait(sending);
}

}  // namespace tonari::window
