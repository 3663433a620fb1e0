#include "job/group.hpp"
#include "message/message_runtime.hpp"

#include <algorithm>
#include <mutex>

// The handling of operations when a rank dies or leaves.
namespace tonari::message {

using fabric::Step;

void MessageRuntime::set_presence(int rank, Presence presence) noexcept {
  // (1) Pairs with the acquire loads of presence_: a thread that sees it also sees what this thread saw before, such as
  // the rank's phase.
  presence_[static_cast<std::size_t>(rank)].store(presence, std::memory_order_release);
  any_gone_.store(true, std::memory_order_release);  // (2) presence before flag: pairs with (3)
}

// True if the operation needs a rank that does nothing for it any more. Checked under the lock, under which died() and
// left() work too.
bool MessageRuntime::cannot_complete(const Operation& operation) const noexcept {
  if (!any_gone_.load(std::memory_order_acquire)) [[likely]]  // (3)
    return false;
  // Acquire, here and in finds_dead(): pairs with (1).
  const bool peer_gone = operation.call.peer >= 0 && presence_[static_cast<std::size_t>(operation.call.peer)].load(
                                                         std::memory_order_acquire) != Presence::here;
  return peer_gone || has_a_dead_part(operation);
}

// True if the operation belongs to a collective with a dead rank.
bool MessageRuntime::has_a_dead_part(const Operation& operation) const noexcept {
  return operation.call.context_id == operation.call.context->collective_id() && finds_dead(*operation.call.context);
}

bool MessageRuntime::finds_dead(const Context& context) const noexcept {
  const auto is_dead = [this](JobRank rank) {
    return presence_[rank.index()].load(std::memory_order_acquire) == Presence::dead;
  };
  return std::ranges::any_of(context.group().ranks(), is_dead) ||
         (context.is_inter() && std::ranges::any_of(context.peers().ranks(), is_dead));
}

void MessageRuntime::become(Operation& operation, State state, Sleepers& to_wake) noexcept {
  fabric::Sleeper* sleeper = nullptr;
  become(operation, state, sleeper);
  if (sleeper != nullptr) to_wake.push_back(sleeper);
}

void MessageRuntime::died(int rank) noexcept {
  // A collective cannot complete without one of its ranks.
  const auto is_part = [rank](const Operation& operation) {
    return operation.call.context_id == operation.call.context->collective_id() && operation.call.context->has(rank);
  };
  Sleepers to_wake;
  {
    const std::lock_guard guard(lock_);
    set_presence(rank, Presence::dead);
    for_each_waiting([&](Operation& operation) {
      // A receive from any rank must not wait forever either.
      const bool from_anyone = operation.call.peer < 0 && job::position_in(operation.call.context->peers(), rank) >= 0;
      if (operation.call.peer != rank && !from_anyone && !is_part(operation)) return;
      withdraw_waiting(operation);
      operation.progress.status = Status::peer_gone;
      become(operation, State::complete, to_wake);
    });
    outgoing_.for_each([&](Operation& operation) {
      if (operation.call.peer == rank) {
        fail_send(operation, to_wake);
      } else if (is_part(operation) && operation.progress.state.load(std::memory_order_relaxed) == State::announced) {
        become(operation, State::doomed,
               to_wake);  // its receive may never be posted; if it is granted already, the receive was posted
      }
    });
    incoming_.for_each([&](Operation& operation) {
      if (static_cast<int>(operation.head.source) == rank) {
        incoming_.remove(operation);
        operation.progress.status = Status::peer_gone;
        become(operation, State::settled, to_wake);
      } else if (is_part(operation)) {
        become(operation, State::doomed, to_wake);  // its sender may have withdrawn it before it was matched
      }
    });
  }
  for (fabric::Sleeper* sleeper : to_wake) sleeper->wake();
}

// The rank destroyed its Job. Transfers that it has begun continue; operations that it would still have to begin fail.
void MessageRuntime::left(int rank) noexcept {
  Sleepers to_wake;
  {
    const std::lock_guard guard(lock_);
    set_presence(rank, Presence::left);
    for_each_waiting([&](Operation& operation) {
      if (operation.call.peer != rank) return;
      withdraw_waiting(operation);
      operation.progress.status = Status::peer_gone;
      become(operation, State::complete, to_wake);
    });
    outgoing_.for_each([&](Operation& operation) {
      const bool unmet =
          operation.call.peer == rank && operation.progress.state.load(std::memory_order_relaxed) == State::announced;
      if (unmet) become(operation, State::doomed, to_wake);
    });
  }
  for (fabric::Sleeper* sleeper : to_wake) sleeper->wake();
}

// Fails a send whose receiver died; called under the lock. The ticket is freed at once, because the owning
// thread may be waiting for one in another operation, unless it is copying.
void MessageRuntime::fail_send(Operation& operation, Sleepers& to_wake) noexcept {
  State state = operation.progress.state.load(std::memory_order_relaxed);
  if (state == State::held || state == State::complete) return;  // the next retry fails held operations
  operation.progress.status = Status::peer_gone;
  // Leave `granted`, so that the owning thread does not begin to copy.
  while (state != State::copying &&
         !operation.progress.state.compare_exchange_weak(state, State::announced, std::memory_order_relaxed)) {
  }
  if (state != State::copying) release_ticket(operation);
  become(operation, State::complete, to_wake);
}

// Called by the owning thread: ends a send that no receive may ever match. If the ticket has no TransferMemory, the
// send is a user's send to a rank that has left, so no rank copies from it.
Step MessageRuntime::withdraw(Operation& operation) noexcept {
  if (!operation.sending.launched.load(std::memory_order_acquire))
    return Step::retry;  // `finish` would overtake the announcement
  const bool may_be_copied = engine_.copies_directly(operation.call.peer) && has_transfer(operation.transfer.ticket);
  if (may_be_copied &&
      !engine_.transfer_of(self_, operation.transfer.ticket.index).close(operation.transfer.ticket.generation)) {
    return Step::waiting;  // waits for `done`, because the receiver copies
  }
  return finish_send(operation, Status::peer_gone);
}

// Called by the owning thread: ends a receive whose payload may never arrive.
Step MessageRuntime::abandon(Operation& operation) noexcept {
  const int peer = static_cast<int>(operation.head.source);
  const Ticket ticket = operation.transfer.ticket;
  // Otherwise the ticket is malformed or remote, or no side copies directly any more.
  const bool names_one =
      has_transfer(ticket) && !engine_.is_remote(peer) && operation.transfer.terms.road == Road::direct;
  if (names_one && !engine_.transfer_of(peer, ticket.index).close(ticket.generation))
    return Step::waiting;  // waits for `finish`
  std::vector<Piece> pieces;
  {
    const std::lock_guard guard(lock_);
    incoming_.remove(operation);
    pieces.swap(operation.pieces);
  }
  operation.signals.has_pieces.store(false, std::memory_order_relaxed);
  for (const Piece& piece : pieces) give_back(peer, piece);
  reply_done(peer, ticket, Status::peer_gone);
  return complete_receive(operation, Status::peer_gone);
}

}  // namespace tonari::message
