#include "share/share_runtime.hpp"

#include <memory>

namespace tonari::share {

using fabric::Head;

ShareRuntime& ShareRuntime::of(job::Session& session) {
  fabric::Engine& engine = fabric::Engine::of(session);
  return engine.handler<ShareRuntime>(fabric::Protocol::share,
                                      [&engine] { return std::make_unique<ShareRuntime>(engine); });
}

void ShareRuntime::receive(std::span<const Head> heads) noexcept {
  for (const Head& head : heads) receive(head);
}

Communicator& ShareRuntime::ranks(Job& job) {
  const std::lock_guard guard(sharing_mutex_);
  return ranks_of(job);
}

Communicator& ShareRuntime::ranks_of(Job& job) {
  if (!ranks_) ranks_.emplace(Communicator(job).duplicate());
  return *ranks_;
}

SharedMemory& ShareRuntime::sharing(Job& job) {
  const std::lock_guard guard(sharing_mutex_);
  if (!shared_memory_) {
    shared_memory_ = std::make_unique<SharedMemory>(job, engine_, ranks_of(job), requests_, send_queue_);
    shared_.store(shared_memory_.get(), std::memory_order_release);
    flags_.open(shared_memory_->window().local());
  }
  return *shared_memory_;
}

void ShareRuntime::receive(const Head& head) noexcept {
  switch (head.kind.to<Kind>()) {
    case Kind::share_pages:
    case Kind::share_moved:
    case Kind::share_taken:
    case Kind::share_copies:
    case Kind::share_noted:
    case Kind::share_gone:
    case Kind::share_reached: return requests_.receive(head);
    case Kind::share_await:
    case Kind::share_set: return flags_.receive(head);
    case Kind::guard_want:
    case Kind::guard_deed:
    case Kind::guard_given:
    case Kind::guard_given_tail:
    case Kind::guard_fetch:
    case Kind::guard_more:
    case Kind::guard_stop:
    case Kind::guard_stopped:
    case Kind::guard_inherit:
    case Kind::guard_has:
    case Kind::guard_waits:
    case Kind::guard_lost:
    case Kind::guard_freed:
    case Kind::guard_over: return replicas_.receive(head);
    default: break;
  }
  if (!waiting_.empty() || !serve(head)) waiting_.push_back(head);
  waiting_count_.set(waiting_.size());
}

// Returns false if there is no room for the reply.
bool ShareRuntime::serve(const Head& head) noexcept {
  if (head.source >= static_cast<std::uint32_t>(engine_.session().size())) return true;  // malformed: drop it
  const int peer = static_cast<int>(head.source);
  const auto words = head.as<Words>();
  const bool has_tail = head.kind.has_tail();
  const auto tail = has_tail ? engine_.look(peer, words.tail_place, words.tail_bytes) : std::span<const std::byte>();
  if (has_tail && tail.empty()) {  // malformed: drop it
    engine_.give_back(peer, words.tail_place);
    return true;
  }
  bool served = true;
  bool known = false;
  if (SharedMemory* const sharing = this->sharing()) {
    known = sharing->with(words.object,
                          [&](Array& array) { served = array.serve(head.kind.to<Kind>(), peer, words, tail); });
  }
  if (!served) return false;
  if (has_tail) engine_.give_back(peer, words.tail_place);
  if (!known && head.kind != Kind::share_told) refuse(peer, head.kind.to<Kind>(), words);
  return true;
}

// Replies to a request for an array that does not exist: it was destroyed, or the request is malformed.
void ShareRuntime::refuse(int peer, Kind kind, const Words& request) noexcept {
  Words reply = reply_to(request);
  reply.extra = static_cast<std::uint64_t>(engine_.session().rank());
  const bool asks_home = kind == Kind::share_fetch || kind == Kind::share_changes;
  send_queue_.post(peer, head_of(asks_home ? Kind::share_gone : Kind::share_noted, engine_.session().rank(), reply),
                   fabric::Lane::reply);
}

void ShareRuntime::retry() noexcept {
  send_queue_.retry();
  replicas_.retry();
  while (!waiting_.empty() && serve(waiting_.front())) waiting_.pop_front();
  waiting_count_.set(waiting_.size());
}

}  // namespace tonari::share
