#include "message/message_runtime.hpp"
#include "message/waiting.hpp"

#include <mutex>

// Probes, and cancelling receives.
namespace tonari::message {

using fabric::Head;

// Offers an unexpected message to the waiting probes; called under the lock. Returns the number of sleepers that must
// be woken.
std::size_t MessageRuntime::tell_probes(const Head& head, std::span<fabric::Sleeper*> to_wake) noexcept {
  std::size_t told = 0;
  for (Operation* probe = probes_.front(); probe != nullptr;) {
    Operation* const next = probe->links.next;
    if (key_of(head, shape_of(*probe)) == key_of(*probe)) {
      probes_.remove(*probe);
      probe->head = head;
      fabric::Sleeper* sleeper = nullptr;
      become(*probe, State::matched, sleeper);
      if (sleeper != nullptr && told < to_wake.size()) {
        to_wake[told++] = sleeper;
      } else if (sleeper != nullptr) {
        sleeper->wake();  // more threads than to_wake has room for: wake it under the lock
      }
    }
    probe = next;
  }
  return told;
}

bool MessageRuntime::cancel(Operation& operation) noexcept {
  const std::lock_guard guard(lock_);
  if (operation.progress.state.load(std::memory_order_relaxed) != State::posted) return false;
  posted_.withdraw(operation);
  engine_.counters().posted_now.store(posted_.size(), std::memory_order_relaxed);
  operation.progress.status = Status::cancelled;
  operation.progress.state.store(State::complete, std::memory_order_relaxed);
  return true;
}

std::optional<Result<Envelope>> MessageRuntime::probe(Context& context, int peer, int tag, bool wait_for_it) noexcept {
  Operation probe(Operation::Kind::probe, context);
  probe.call.peer = peer;
  probe.call.tag = tag;
  probe.call.context_id = context.id();
  if (!wait_for_it) engine_.progress();
  {
    const std::lock_guard guard(lock_);
    if (const Head* head = unexpected_.find(probe)) {
      probe.head = *head;
      probe.progress.state.store(State::matched, std::memory_order_relaxed);
    } else if (cannot_complete(probe)) {
      return Result<Envelope>{Status::peer_gone, {}};
    } else if (!wait_for_it) {
      return std::nullopt;
    } else {
      probe.progress.state.store(State::posted, std::memory_order_relaxed);
      probes_.push_back(probe);
    }
  }
  wait(probe, job::Wait::probe);
  return probe.result();
}

std::optional<Result<Envelope>> MessageRuntime::matched_probe(Operation& operation, int peer, int tag,
                                                              bool wait_for_it) noexcept {
  if (!wait_for_it) engine_.progress();
  start_receive(operation, {{}, peer, tag, operation.call.context->id()});
  if (!wait_for_it && cancel(operation)) return std::nullopt;
  wait(operation, job::Wait::probe);
  return operation.result();
}

void MessageRuntime::receive_matched(Operation& operation, std::span<std::byte> buffer) noexcept {
  operation.call.kind = Operation::Kind::receive;
  operation.call.buffer = buffer;
  operation.progress.handled = State::idle;
  operation.signals.is_awaited.store(false, std::memory_order_relaxed);  // it was set for the probe
  Grant grant;
  bool granted = false;
  {
    const std::lock_guard guard(lock_);
    operation.call.peer = static_cast<int>(operation.head.source);
    if (operation.head.kind == Kind::message_announced && cannot_complete(operation)) {
      operation.progress.status = Status::peer_gone;  // its payload was lost with its sender
      operation.progress.has_envelope = false;
      return;
    }
    granted = match(operation, operation.head, grant);
  }
  if (granted) send_grant(operation.call.peer, grant);
}

}  // namespace tonari::message
