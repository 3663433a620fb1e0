#include "job/group.hpp"
#include "message/message_runtime.hpp"

#include <algorithm>
#include <mutex>

// What becomes of operations when a rank dies or leaves.
namespace tonari::message {

using fabric::Step;

void MessageRuntime::set_presence(int rank, Presence presence) noexcept {
  presence_[static_cast<std::size_t>(rank)].store(presence, std::memory_order_release);
  any_gone_.store(true, std::memory_order_release);
}

// Needs a rank that does nothing for it any more. Checked under the lock, as died() and left() work under it.
bool MessageRuntime::cannot_complete(const Operation& operation) const noexcept {
  if (!any_gone_.load(std::memory_order_acquire)) [[likely]]
    return false;
  const bool peer_gone = operation.peer >= 0 && presence_[static_cast<std::size_t>(operation.peer)].load(
                                                    std::memory_order_acquire) != Presence::here;
  return peer_gone || has_a_dead_part(operation);
}

// Belongs to a collective of which a rank died.
bool MessageRuntime::has_a_dead_part(const Operation& operation) const noexcept {
  return operation.context_id == operation.context->collective_id() && finds_dead(*operation.context);
}

bool MessageRuntime::finds_dead(const Context& context) const noexcept {
  return std::ranges::any_of(context.group().ranks(), [this](JobRank rank) {
    return presence_[rank.index()].load(std::memory_order_acquire) == Presence::dead;
  });
}

void MessageRuntime::become(Operation& operation, State state, Sleepers& to_wake) noexcept {
  fabric::Sleeper* sleeper = nullptr;
  become(operation, state, sleeper);
  if (sleeper != nullptr) to_wake.push_back(sleeper);
}

void MessageRuntime::died(int rank) noexcept {
  // A collective cannot end without one of its ranks.
  const auto is_part = [rank](const Operation& operation) {
    return operation.context_id == operation.context->collective_id() &&
           job::position_in(operation.context->group(), rank) >= 0;
  };
  Sleepers to_wake;
  {
    const std::lock_guard guard(lock_);
    set_presence(rank, Presence::dead);
    for_each_waiting([&](Operation& operation) {
      // Nor may a receive from anyone wait for ever.
      const bool from_anyone = operation.peer < 0 && job::position_in(operation.context->group(), rank) >= 0;
      if (operation.peer != rank && !from_anyone && !is_part(operation)) return;
      withdraw_waiting(operation);
      operation.status = Status::peer_gone;
      become(operation, State::complete, to_wake);
    });
    outgoing_.for_each([&](Operation& operation) {
      if (operation.peer == rank) {
        fail_send(operation, to_wake);
      } else if (is_part(operation) && operation.state.load(std::memory_order_relaxed) == State::announced) {
        become(operation, State::doomed, to_wake);  // its receive may never be posted; once it is granted, it was
      }
    });
    incoming_.for_each([&](Operation& operation) {
      if (static_cast<int>(operation.head.source) == rank) {
        incoming_.remove(operation);
        operation.status = Status::peer_gone;
        become(operation, State::settled, to_wake);
      } else if (is_part(operation)) {
        become(operation, State::doomed, to_wake);  // its sender may have withdrawn it before it came
      }
    });
  }
  for (fabric::Sleeper* sleeper : to_wake) sleeper->wake();
}

// Its peer destroyed its Job. What it has begun goes on; what it would have to begin for us fails.
void MessageRuntime::left(int rank) noexcept {
  Sleepers to_wake;
  {
    const std::lock_guard guard(lock_);
    set_presence(rank, Presence::left);
    for_each_waiting([&](Operation& operation) {
      if (operation.peer != rank) return;
      withdraw_waiting(operation);
      operation.status = Status::peer_gone;
      become(operation, State::complete, to_wake);
    });
    outgoing_.for_each([&](Operation& operation) {
      const bool unmet = operation.peer == rank && operation.state.load(std::memory_order_relaxed) == State::announced;
      if (unmet) become(operation, State::doomed, to_wake);
    });
  }
  for (fabric::Sleeper* sleeper : to_wake) sleeper->wake();
}

// Its receiver died; under the lock. The ticket is free at once, unless the asker is copying: it may be waiting for one
// in another operation.
void MessageRuntime::fail_send(Operation& operation, Sleepers& to_wake) noexcept {
  State state = operation.state.load(std::memory_order_relaxed);
  if (state == State::held || state == State::complete) return;  // what is held is failed by the next retry
  operation.status = Status::peer_gone;
  // No longer granted, so that the asker does not begin to copy.
  while (state != State::copying &&
         !operation.state.compare_exchange_weak(state, State::announced, std::memory_order_relaxed)) {
  }
  if (state != State::copying) release_ticket(operation);
  become(operation, State::complete, to_wake);
}

// By the asker: ends a send that no receive may ever take. One whose receiver copies alone is a user's, to a rank that
// has left: nobody copies.
Step MessageRuntime::withdraw(Operation& operation) noexcept {
  if (!operation.launched.load(std::memory_order_acquire)) return Step::retry;  // `finish` would overtake it
  const bool may_be_copied = engine_.copies_directly(operation.peer) && has_transfer(operation.ticket);
  if (may_be_copied && !engine_.transfer_of(self_, operation.ticket).close(operation.generation)) {
    return Step::waiting;  // for `done`: the receiver copies
  }
  return finish_send(operation, Status::peer_gone);
}

// By the asker: ends a receive whose payload may never come.
Step MessageRuntime::abandon(Operation& operation) noexcept {
  const int peer = static_cast<int>(operation.head.source);
  const fabric::Grant& grant = operation.grant;
  const bool names_one = grant.ticket < fabric::tickets_max && !engine_.is_remote(peer);  // or a peer lies
  if (names_one && !engine_.transfer_of(peer, grant.ticket).close(grant.generation))
    return Step::waiting;  // for `finish`
  std::vector<fabric::Piece> pieces;
  {
    const std::lock_guard guard(lock_);
    incoming_.remove(operation);
    pieces.swap(operation.pieces);
  }
  operation.piece_waiting.store(false, std::memory_order_relaxed);
  for (const fabric::Piece& piece : pieces) give_back(peer, piece);
  reply_done(peer, grant.ticket, grant.generation, Status::peer_gone);
  return complete_receive(operation, Status::peer_gone);
}

}  // namespace tonari::message
