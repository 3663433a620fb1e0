#include "message/layout_cursor.hpp"
#include "message/message_runtime.hpp"
#include "message/schedule.hpp"
#include "message/user_data.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

// The part of MessageRuntime that sends.
namespace tonari::message {

using fabric::Head;
using fabric::Lane;
using fabric::Step;

namespace {

// Copies up to 48 bytes. The compiler does not know the length; 8 bytes are copied without a function call.
void copy_inline(std::byte* to, std::span<const std::byte> from) noexcept {
  const std::size_t bytes = from.size();
  if (bytes == 8) {
    std::memcpy(to, from.data(), 8);
  } else if (bytes != 0) {
    std::memcpy(to, from.data(), bytes);
  }
}

}  // namespace

// True if a message to this peer may be sent at once. It may not overtake a message held for the same peer; it must be
// announced if the peer's unexpected messages are at their limit; it is refused if the peer died or left.
bool MessageRuntime::way_is_free(int peer) const noexcept {
  return !any_gone_.load(std::memory_order_relaxed) &&
         held_to_[static_cast<std::size_t>(peer)].load(std::memory_order_acquire) == 0 &&
         engine_.session().arena().block(peer).full.load(std::memory_order_relaxed) == 0;
}

// True if the payload is short enough to be sent before its receive is posted. To another host every payload that a
// head can take along is sent at once, because an announcement costs two more network latencies.
bool MessageRuntime::goes_unasked(int peer, std::size_t bytes) const noexcept {
  return engine_.is_remote(peer) ? bytes <= fabric::bulk_tail_bytes_max : bytes < direct_bytes_;
}

Status MessageRuntime::send_fast(const Send& what) noexcept {
  const bool fits = what.bytes.size() <= split_ && what.mode == SendMode::standard && way_is_free(what.peer);
  if (!fits) [[unlikely]]
    return Status::again;
  Head head = envelope(Kind::message_inline, self_, what.context_id, what.tag);
  head.inline_bytes = static_cast<std::uint8_t>(what.bytes.size());
  copy_inline(head.payload.data(), what.bytes);
  const Status status = engine_.send(what.peer, head, Lane::request);
  if (status != Status::again) [[likely]] {
    count_sent(what.bytes.size());
  }
  return status;
}

void MessageRuntime::count_sent(std::size_t bytes) noexcept {
  job::Counters& counters = engine_.counters();
  if (this_thread() == counting_thread_) [[likely]] {
    job::Counters::add(counters.messages_sent, 1);
    job::Counters::add(counters.bytes_sent, bytes);
  } else {
    counters.messages_sent_by_others.fetch_add(1, std::memory_order_relaxed);
    counters.bytes_sent_by_others.fetch_add(bytes, std::memory_order_relaxed);
  }
}

Status MessageRuntime::send(Context& context, const Send& what) noexcept {
  const Status status = send_fast(what);
  if (status != Status::again) [[likely]]
    return status;
  return send_slow(context, what);
}

// Sends a message that does not fit into a head, or that has no room now.
Status MessageRuntime::send_slow(Context& context, const Send& what) noexcept {
  Operation operation(Operation::Kind::send, context);
  start_send(operation, what);
  wait(operation, job::Wait::send);
  return operation.progress.status;
}

Status MessageRuntime::send_scattered(Context& context, const Send& what, LayoutCursor& data) noexcept {
  Operation operation(Operation::Kind::send, context);
  operation.scattered.reset(&data);
  start_send(operation, what);
  wait(operation, job::Wait::send);
  (void)operation.scattered.release();  // the caller's
  return operation.progress.status;
}

void MessageRuntime::start_send(Operation& operation, const Send& what) noexcept {
  operation.call.peer = what.peer;
  operation.call.tag = what.tag;
  operation.call.context_id = what.context_id;
  operation.call.mode = what.mode;
  operation.call.buffer = {const_cast<std::byte*>(what.bytes.data()), what.bytes.size()};  // never written
  if (cannot_complete(operation)) return complete(operation, Status::peer_gone);
  prepare(operation, what);
  launch_or_hold(operation);
}

// Chooses the protocol, and copies payloads that leave the user's buffer at once. Called by the owning thread, because
// it touches user memory.
void MessageRuntime::prepare(Operation& operation, const Send& what) noexcept {
  const bool full = engine_.session().arena().block(what.peer).full.load(std::memory_order_relaxed) != 0;
  const std::size_t bytes = what.bytes.size();
  if (what.mode == SendMode::standard && !full && bytes <= split_) {
    operation.head = envelope(Kind::message_inline, self_, what.context_id, what.tag);
    operation.head.inline_bytes = static_cast<std::uint8_t>(bytes);
    if (operation.scattered != nullptr) [[unlikely]] {
      operation.scattered->pack(0, operation.head.payload.data(), bytes);
    } else {
      copy_inline(operation.head.payload.data(), what.bytes);
    }
    return;
  }
  // A message that must wait behind others takes no block of bulk memory: the others may need it to proceed.
  const bool behind = held_to_[static_cast<std::size_t>(what.peer)].load(std::memory_order_acquire) != 0;
  if (what.mode == SendMode::standard && !full && !behind && goes_unasked(what.peer, bytes)) {
    if (const auto place = engine_.bulk().allocate(bytes, what.peer)) {
      copy_out(operation, 0, engine_.bulk().at(*place), bytes);
      operation.head = envelope(Kind::message_bulk, self_, what.context_id, what.tag);
      operation.head.set(fabric::Tail{bytes, place->value});
      return;
    }
  }
  operation.head = envelope(Kind::message_announced, self_, what.context_id, what.tag);
}

void MessageRuntime::launch_or_hold(Operation& operation) noexcept {
  // `finish` is not held behind others: it needs no order, and one of the held messages may wait for its ticket.
  const bool behind = held_to_[static_cast<std::size_t>(operation.call.peer)].load(std::memory_order_acquire) != 0;
  if (behind && operation.head.kind != Kind::finish) return hold(operation);
  const Status status = launch(operation);
  if (status == Status::again) return hold(operation);
  if (status != Status::ok) complete(operation, status);
}

// Sends a prepared head. After ok the operation belongs to the thread that advances it next, and may be destroyed
// already. After any other status nothing was sent.
Status MessageRuntime::launch(Operation& operation) noexcept {
  const bool is_finish = operation.head.kind == Kind::finish;
  const std::size_t bytes = operation.call.buffer.size();
  const Status status =
      operation.head.kind == Kind::message_announced ? launch_announced(operation) : launch_whole(operation);
  if (status == Status::ok && !is_finish) {
    count_sent(bytes);
  }
  return status;
}

Status MessageRuntime::launch_whole(Operation& operation) noexcept {
  if (operation.head.kind == Kind::finish && operation.progress.status == Status::denied) [[unlikely]]
    return launch_refusal(operation);
  const Status status = engine_.send(operation.call.peer, operation.head, Lane::request);
  if (status == Status::ok) complete(operation, operation.progress.status);
  return status;
}

Status MessageRuntime::launch_announced(Operation& operation) noexcept {
  if (cannot_complete(operation)) return Status::peer_gone;
  if (!operation.sending.has_ticket && !take_ticket(operation)) return Status::again;
  const bool launched = operation.sending.launched.load(std::memory_order_relaxed);
  const Head head = operation.head;
  const Ticket ticket = operation.transfer.ticket;
  const int peer = operation.call.peer;
  {
    const std::lock_guard guard(lock_);  // before the head is sent, because its grant may arrive before send() returns
    if (cannot_complete(operation))
      return Status::peer_gone;  // check again under the lock: from here on died() finds the operation
    outgoing_.set(ticket.index, &operation);
    set_state(operation, State::announced);  // after the ticket is set, because the owning thread sends it on
  }
  const Status status = engine_.send(peer, head, Lane::request);
  if (status == Status::ok && launched) return status;
  const std::lock_guard guard(lock_);
  // The operation may have been completed meanwhile, and destroyed by its owning thread.
  const bool ours =
      outgoing_.find(ticket.index) == &operation && operation.transfer.ticket.generation == ticket.generation;
  if (ours && status == Status::ok)
    operation.sending.launched.store(true, std::memory_order_release);  // after its head was sent
  if (!ours || status == Status::ok) return Status::ok;
  const State state = operation.progress.state.load(std::memory_order_relaxed);
  if (state != State::announced && state != State::doomed)
    return Status::ok;  // the peer died: died() has reported that
  outgoing_.set(ticket.index, nullptr);
  operation.progress.state.store(State::held, std::memory_order_relaxed);
  return status;
}

bool MessageRuntime::take_ticket(Operation& operation) noexcept {
  const bool in_collective = operation.call.context_id == operation.call.context->collective_id();
  auto ticket = engine_.tickets().take(in_collective ? 0 : tickets_for_collectives);
  if (!ticket && !in_collective) {
    const std::lock_guard guard(lock_);
    ticket = outgoing_.take();
  }
  if (!ticket) return false;
  operation.sending.has_ticket = true;
  operation.transfer.ticket = *ticket;
  const bool in_pieces = is_paged(operation) || is_refused(operation.call.peer);
  const auto address = in_pieces                        ? in_pieces_only
                       : operation.scattered != nullptr ? has_gaps
                                                        : reinterpret_cast<std::uint64_t>(operation.call.buffer.data());
  operation.head.set(Announced{operation.call.buffer.size(), address, *ticket});
  return true;
}

void MessageRuntime::hold(Operation& operation) noexcept {
  operation.sending.launched.store(false, std::memory_order_relaxed);
  operation.progress.state.store(State::held, std::memory_order_relaxed);
  engine_.counters().held_back.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard guard(held_lock_);
    const auto peer = static_cast<std::size_t>(operation.call.peer);
    if (held_to_[peer].fetch_add(1, std::memory_order_relaxed) == 0) peers_with_held_.push_back(operation.call.peer);
    held_count_.add();
    (operation.head.kind == Kind::finish ? held_[peer].finishes : held_[peer].messages).push_back(operation);
  }
  engine_.wake_self();
}

// Sends a reply. Each ticket guarantees room for it, except for a short moment (see Engine::send) and for tickets that
// are only names; then the reply is held. If the peer died, died() reports it.
void MessageRuntime::send_reply(int peer, const Head& head) noexcept {
  if (engine_.send(peer, head, Lane::reply) != Status::again) return;
  {
    const std::lock_guard guard(held_lock_);
    held_replies_.push_back({peer, head});
    held_count_.add();
  }
  engine_.wake_self();
}

// Called by the progress lock's holder, the only thread that removes held operations.
void MessageRuntime::retry() noexcept {
  if (held_count_.is_zero()) return;
  wait_rounds.add();
  retry_blocked();
  const std::lock_guard guard(held_lock_);
  std::erase_if(held_replies_, [this](const Reply& reply) {
    const bool gone = engine_.send(reply.peer, reply.head, Lane::reply) != Status::again;
    if (!gone) (void)engine_.ask_for_room(reply.peer, Lane::reply);
    if (gone) held_count_.remove();
    return gone;
  });
  for (std::size_t i = 0; i < peers_with_held_.size();) {
    const int peer = peers_with_held_[i];
    if (launch_held(peer)) {
      peers_with_held_[i] = peers_with_held_.back();
      peers_with_held_.pop_back();
    } else {
      ++i;
    }
  }
}

// Called under held_lock_: launches the held sends to a peer until there is no more room. Returns true if no send is
// left.
bool MessageRuntime::launch_held(int peer) noexcept {
  const auto index = static_cast<std::size_t>(peer);
  while (held_to_[index].load(std::memory_order_relaxed) != 0) {
    OperationList& list = held_[index].finishes.front() != nullptr ? held_[index].finishes : held_[index].messages;
    Operation* const operation = list.front();
    operation_looks.add();
    list.remove(*operation);
    held_lock_.unlock();
    Status status = launch(*operation);
    if (status == Status::again && engine_.ask_for_room(peer, Lane::request)) status = launch(*operation);
    if (status != Status::ok && status != Status::again) complete(*operation, status);
    held_lock_.lock();
    if (status == Status::again) {
      list.push_front(*operation);
      return false;
    }
    held_count_.remove();
    held_to_[index].fetch_sub(1, std::memory_order_release);  // release: its head is in the ring before any later head
  }
  return true;
}

// Sends a short payload that was announced because bulk memory or its receiver was full. It is sent as soon as there is
// room, without waiting for the receive: the receive may be posted only after an action that the owning thread
// takes after this send.
Step MessageRuntime::send_late(Operation& operation) noexcept {
  const bool full = engine_.session().arena().block(operation.call.peer).full.load(std::memory_order_relaxed) != 0;
  const std::size_t bytes = operation.call.buffer.size();
  const bool is_short =
      operation.call.mode == SendMode::standard && goes_unasked(operation.call.peer, bytes) && bytes != 0;
  if (!is_short || full || operation.sending.sent_late) return Step::waiting;
  if (!operation.sending.launched.load(std::memory_order_acquire))
    return Step::retry;  // it would overtake its announcement
  const auto place = engine_.bulk().allocate(bytes, operation.call.peer);
  if (!place) return Step::retry;
  copy_out(operation, 0, engine_.bulk().at(*place), bytes);
  Head head = envelope(Kind::late, self_, operation.call.context_id, operation.call.tag);
  head.set(Piece{bytes, place->value, 0, operation.transfer.ticket});
  const Status status = engine_.send(operation.call.peer, head, Lane::request);
  operation.sending.sent_late = status == Status::ok;
  if (!operation.sending.sent_late) fabric::BulkReader::give_back(engine_.bulk_of(self_), *place);
  return status == Status::again ? Step::retry : Step::waiting;  // waits for `done` or a grant
}

Operation* MessageRuntime::outgoing(std::uint32_t source, Ticket ticket) noexcept {
  Operation* operation = outgoing_.find(ticket.index);
  const bool known = operation != nullptr && operation->transfer.ticket.generation == ticket.generation &&
                     operation->call.peer == static_cast<int>(source);
  return known ? operation : nullptr;
}

void MessageRuntime::granted(const Head& head) noexcept {
  const auto [ticket, terms] = head.as<Grant>();
  const bool direct = terms.road == Road::direct && engine_.copies_directly(static_cast<int>(head.source));
  const bool sane = terms.chunk_bytes != 0 && (direct || terms.road == Road::pieces);
  fabric::Sleeper* to_wake = nullptr;
  {
    const std::lock_guard guard(lock_);
    Operation* operation = outgoing(head.source, ticket);
    if (operation == nullptr || !sane || terms.bytes > operation->call.buffer.size() ||
        !may_be_granted(*operation, terms)) {
      return;
    }
    if (direct && !has_transfer(ticket) && operation->scattered == nullptr && terms.bytes != 0) {
      return;  // malformed: the receiver must copy such a payload alone
    }
    operation->transfer.terms = terms;
    // Only this side knows where the gaps are.
    if (terms.road == Road::pieces || operation->scattered != nullptr) needs_steps(*operation);
    if (terms.bytes == 0) {
      release_ticket(*operation);
      become(*operation, State::complete, to_wake);
    } else {
      become(*operation, State::granted, to_wake);
    }
  }
  if (to_wake != nullptr) to_wake->wake();
}

// Called under the lock. An announced send may be granted once. If direct copies are refused to the receiver, it grants
// pieces after all chunks are over; then no side copies any more.
bool MessageRuntime::may_be_granted(Operation& operation, const Terms& terms) noexcept {
  State state = operation.progress.state.load(std::memory_order_relaxed);
  if (state == State::announced) return true;
  const bool again = (state == State::granted || state == State::copying) && terms.road == Road::pieces &&
                     operation.transfer.terms.road == Road::direct && terms.bytes == operation.transfer.terms.bytes &&
                     has_transfer(operation.transfer.ticket);
  return again && !may_be_copying(operation, state);
}

// True if chunks remain or are being copied. Then a `done` from the receiver is malformed, and the ticket may not be
// reused.
bool MessageRuntime::may_be_copying(const Operation& operation, State state) const noexcept {
  const Ticket ticket = operation.transfer.ticket;
  const Terms& terms = operation.transfer.terms;
  const bool shared =
      (state == State::granted || state == State::copying) && terms.road == Road::direct && has_transfer(ticket);
  return shared && !engine_.transfer_of(self_, ticket.index)
                        .is_over(ticket.generation, fabric::chunks_of(terms.bytes, terms.chunk_bytes));
}

void MessageRuntime::done(const Head& head) noexcept {
  const auto outcome = head.as<Outcome>();
  fabric::Sleeper* to_wake = nullptr;
  {
    const std::lock_guard guard(lock_);
    Operation* operation = outgoing(head.source, outcome.ticket);
    if (operation == nullptr) return;
    const State state = operation->progress.state.load(std::memory_order_relaxed);
    if (state == State::held || state == State::complete || may_be_copying(*operation, state)) return;
    operation->progress.status = fabric::status_of(outcome.status);
    release_ticket(*operation);
    become(*operation, State::complete, to_wake);
  }
  if (to_wake != nullptr) to_wake->wake();
}

}  // namespace tonari::message
