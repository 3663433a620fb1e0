#include "message/layout_transfer.hpp"
#include "message/message_runtime.hpp"

#include <mutex>

// The part of MessageRuntime that copies announced payloads directly between the programs of both sides, and asks for
// pieces if the kernel refuses that.
namespace tonari::message {

using fabric::Head;
using fabric::Lane;
using fabric::Step;

namespace {

// Copies from the sender's memory at `from` to bytes [offset, offset + bytes) of the user's data.
Status read_direct(Operation& operation, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t from,
                   std::size_t bytes) noexcept {
  return operation.scattered != nullptr ? read_scattered(*operation.scattered, copy, offset, from, bytes)
                                        : copy.read(operation.call.buffer.data() + offset, from, bytes);
}

}  // namespace

// The sender.

// The receive is posted: reads the terms, which a second grant may replace until this side begins to copy.
Step MessageRuntime::begin_transfer(Operation& operation) noexcept {
  Terms terms;
  bool is_granted = false;
  {
    const std::lock_guard guard(lock_);
    terms = operation.transfer.terms;
    State expected = State::granted;
    const State next = terms.road == Road::direct ? State::copying : State::granted;
    is_granted = operation.progress.state.compare_exchange_strong(expected, next, std::memory_order_relaxed);
  }
  if (!is_granted) return advance(operation);  // the receiver was faster, or died
  if (terms.road == Road::pieces) return send_pieces(operation);
  operation.progress.handled = State::copying;
  return copy_to_receiver(operation, terms);
}

// Both sides copy, chunk by chunk. If the payload has gaps, this side copies alone.
Step MessageRuntime::copy_to_receiver(Operation& operation, const Terms& terms) noexcept {
  const Ticket ticket = operation.transfer.ticket;
  if (!has_transfer(ticket)) return write_alone(operation, terms);
  fabric::TransferMemory& transfer = engine_.transfer_of(self_, ticket.index);
  const fabric::DirectCopy copy = engine_.direct_copy(operation.call.peer);
  const auto write = [&](std::uint64_t offset, std::uint64_t bytes) {
    return note_refusal(operation.call.peer,
                        operation.scattered != nullptr
                            ? write_scattered(*operation.scattered, copy, offset, terms.address + offset, bytes)
                            : copy.write(terms.address + offset, operation.call.buffer.data() + offset, bytes));
  };
  if (transfer.copy_chunks(ticket.generation, terms.bytes, terms.chunk_bytes, write)) {
    return finish_send(operation, transfer.outcome());
  }
  return operation.ready() ? advance(operation)
                           : Step::waiting;  // waits for `done` from the receiver, which copies the last chunk
}

// Writes a payload that has gaps and a ticket without a TransferMemory.
Step MessageRuntime::write_alone(Operation& operation, const Terms& terms) noexcept {
  const fabric::DirectCopy copy = engine_.direct_copy(operation.call.peer);
  const Status status = write_scattered(*operation.scattered, copy, 0, terms.address, terms.bytes);
  return finish_send(operation, note_refusal(operation.call.peer, status));
}

// This side copied the last chunk: tells the receiver. The send is complete once that head is sent, unless a side was
// denied a copy.
Step MessageRuntime::finish_send(Operation& operation, Status status) noexcept {
  bool ours = false;
  {
    const std::lock_guard guard(lock_);
    ours = operation.progress.state.load(std::memory_order_relaxed) != State::complete;  // otherwise the receiver died
    if (ours) {
      operation.progress.state.store(State::held,
                                     std::memory_order_relaxed);  // from here on neither a death nor `done` changes it
      operation.progress.status = status;
    }
  }
  if (!ours) return advance(operation);
  operation.progress.handled = State::held;
  operation.head = envelope(Kind::finish, self_, operation.call.context_id, operation.call.tag);
  operation.head.set(Outcome{operation.transfer.ticket, static_cast<std::uint32_t>(status), 0});
  launch_or_hold(operation);
  return operation.ready() ? advance(operation) : Step::waiting;
}

// The receiver.

Step MessageRuntime::copy_from_sender(Operation& operation) noexcept {
  const Ticket ticket = operation.transfer.ticket;
  const Terms& terms = operation.transfer.terms;
  const int peer = static_cast<int>(operation.head.source);
  if (terms.bytes == 0) {
    forget_incoming(operation);
    return complete_receive(operation, Status::ok);  // the grant has completed the send
  }
  if (has_gaps_there(operation.head)) return Step::waiting;  // waits for `finish`
  if (!has_transfer(ticket)) return copy_alone(operation);
  const std::uint64_t source = operation.head.as<Announced>().address;
  fabric::TransferMemory& transfer = engine_.transfer_of(peer, ticket.index);
  const fabric::DirectCopy copy = engine_.direct_copy(peer);
  const auto read = [&](std::uint64_t offset, std::uint64_t bytes) {
    return note_refusal(peer, read_direct(operation, copy, offset, source + offset, bytes));
  };
  if (transfer.copy_chunks(ticket.generation, terms.bytes, terms.chunk_bytes, read)) {
    const Status outcome =
        transfer.outcome();  // read before `done` is sent, because the sender may then reuse the ticket
    if (outcome == Status::denied) [[unlikely]]
      return continue_in_pieces(operation);
    forget_incoming(operation);
    reply_done(peer, ticket, outcome);
    return complete_receive(operation, outcome);
  }
  return operation.ready() ? advance(operation) : Step::waiting;  // waits for `finish` from the sender
}

Step MessageRuntime::copy_alone(Operation& operation) noexcept {
  const int peer = static_cast<int>(operation.head.source);
  const std::uint64_t source = operation.head.as<Announced>().address;
  const Status status =
      note_refusal(peer, read_direct(operation, engine_.direct_copy(peer), 0, source, operation.transfer.terms.bytes));
  if (status == Status::denied) [[unlikely]]
    return continue_in_pieces(operation);
  forget_incoming(operation);
  reply_done(peer, operation.transfer.ticket, status);
  return complete_receive(operation, status);
}

// Refused copies.

Status MessageRuntime::note_refusal(int peer, Status status) noexcept {
  // There is no such process also if its main thread has ended. If it died, died() ends the operation.
  if (status != Status::denied && status != Status::peer_gone) [[likely]]
    return status;
  refused_[static_cast<std::size_t>(peer)].store(true, std::memory_order_relaxed);
  return Status::denied;
}

// Tells the receiver that direct copies are refused. The send is announced again, since a second grant will follow.
Status MessageRuntime::launch_refusal(Operation& operation) noexcept {
  const Head head = operation.head;
  const int peer = operation.call.peer;
  const Ticket ticket = operation.transfer.ticket;
  {
    const std::lock_guard guard(lock_);  // before the head is sent, because the grant may arrive before send() returns
    if (presence_[static_cast<std::size_t>(peer)].load(std::memory_order_relaxed) == Presence::dead)
      return Status::peer_gone;
    operation.sending.launched.store(true, std::memory_order_relaxed);
    operation.progress.status = Status::ok;
    set_state(operation, State::announced);
  }
  if (engine_.send(peer, head, Lane::request) != Status::again) return Status::ok;  // or died() ends it
  const std::lock_guard guard(lock_);
  const bool ours =
      outgoing_.find(ticket.index) == &operation && operation.transfer.ticket.generation == ticket.generation;
  if (!ours || operation.progress.state.load(std::memory_order_relaxed) != State::announced) return Status::ok;
  operation.progress.status = Status::denied;
  operation.progress.state.store(State::held, std::memory_order_relaxed);
  return Status::again;
}

Step MessageRuntime::settle_receive(Operation& operation) noexcept {
  const bool refused = operation.progress.status == Status::denied && operation.transfer.terms.road == Road::direct;
  return refused ? continue_in_pieces(operation) : complete_receive(operation, operation.progress.status);
}

// The kernel refused a direct copy on one side, and no side copies any more: has the sender send all of the payload in
// pieces. It has not heard `done` yet, or has sent `finish` with denied.
Step MessageRuntime::continue_in_pieces(Operation& operation) noexcept {
  const int peer = static_cast<int>(operation.head.source);
  const Ticket ticket = operation.transfer.ticket;
  Terms terms{};
  bool sender_died = false;
  bool ends = false;  // a rank of the collective died
  {
    const std::lock_guard guard(lock_);
    sender_died = incoming_.find(operation.head.source, ticket) != &operation;
    ends = !sender_died && has_a_dead_part(operation);
    if (ends) incoming_.remove(operation);
    if (!sender_died && !ends) {
      operation.transfer.terms.road = Road::pieces;
      terms = operation.transfer.terms;
      operation.progress.handled = State::matched;
      operation.progress.state.store(State::matched, std::memory_order_relaxed);
      needs_steps(operation);
    }
  }
  if (ends) reply_done(peer, ticket, Status::peer_gone);
  if (sender_died || ends) return complete_receive(operation, Status::peer_gone);
  send_grant(peer, {ticket, terms});
  return operation.ready() ? Step::retry : Step::waiting;
}

}  // namespace tonari::message
