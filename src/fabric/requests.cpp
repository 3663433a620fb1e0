#include "fabric/requests.hpp"

#include <cstring>
#include <mutex>
#include <utility>

namespace tonari::fabric {

namespace {

Tickets::Ticket ticket_of(const Head& head) noexcept {
  Tickets::Ticket ticket;
  std::memcpy(&ticket, head.payload.data() + ticket_at, sizeof ticket);
  return ticket;
}

}  // namespace

BulkPlace Requests::allocate(std::size_t bytes, int peer) noexcept {
  BulkPlace found;
  const auto attempt = [&] {
    const auto place = engine_.bulk().allocate(bytes, peer);
    if (place) found = *place;
    return place.has_value();
  };
  if (attempt()) return found;
  // Other ranks hold blocks that they have not read yet.
  for (int rank = 0; rank < engine_.session().size(); ++rank) engine_.wake_peer(rank);
  try_until_done(engine_, attempt, Waiter::program);
  return found;
}

void Requests::give_back(BulkPlace block) noexcept {
  BulkReader::give_back(engine_.bulk_of(engine_.session().rank()), block);
}

Status Requests::send(int peer, const Head& head, Waiter waiter, Wakeup wakeup) noexcept {
  Status sent = engine_.send(peer, head, Lane::request);
  if (sent == Status::again) {
    engine_.wake_peer(peer);  // it makes room when it reads its heads
    try_until_done(
        engine_, [&] { return (sent = engine_.send(peer, head, Lane::request)) != Status::again; }, waiter);
  }
  if (sent == Status::ok) {
    if (wakeup == Wakeup::now) engine_.wake_peer(peer);
  } else if (head.kind.has_tail()) {
    give_back(BulkPlace{head.as<Tail>().place});
  }
  return sent;
}

// Returns the request with its ticket.
Head Requests::expect(PendingRequest& pending, int peer, const Head& request, Tickets::Ticket ticket) noexcept {
  pending.ticket_ = ticket;
  pending.peer_ = peer;
  pending.asked_for_ = request.kind;
  pending.done_.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard guard(lock_);
    pending_[ticket.index] = &pending;
  }
  Head head = request;
  std::memcpy(head.payload.data() + ticket_at, &ticket, sizeof ticket);
  return head;
}

void Requests::ask(PendingRequest& pending, int peer, const Head& request, Waiter waiter, Wakeup wakeup) noexcept {
  auto ticket = engine_.tickets().take();
  if (!ticket) {
    try_until_done(
        engine_, [&] { return (ticket = engine_.tickets().take()).has_value(); }, waiter);
  }
  const Head head = expect(pending, peer, request, *ticket);
  // If the peer is gone, the request ends with peer_gone, here or by the service thread, whichever is first.
  if (send(peer, head, waiter, wakeup) != Status::ok) end_requests_to(peer);
}

bool Requests::try_ask(PendingRequest& pending, int peer, const Head& request, unsigned spare) noexcept {
  const auto ticket = engine_.tickets().take(spare);
  if (!ticket) return false;
  const Head head = expect(pending, peer, request, *ticket);
  const Status sent = engine_.send(peer, head, Lane::request);
  if (sent == Status::ok) {
    engine_.wake_peer(peer);
    return true;
  }
  if (sent == Status::again && forget(pending)) return false;
  if (request.kind.has_tail()) give_back(BulkPlace{request.as<Tail>().place});
  end_requests_to(peer);
  return true;
}

void Requests::tell(int peer, const Head& head, Wakeup wakeup) noexcept {
  (void)send(peer, head, Waiter::program, wakeup);  // a peer that is gone need not be told
}

void Requests::wait(const PendingRequest& pending, Waiter waiter) noexcept {
  const auto ready = [&pending] { return pending.is_done(); };
  if (waiter == Waiter::program) return wait_until(engine_, ready, job::Wait::window, pending.peer());
  wait_as_faults(engine_, ready);
}

bool Requests::abandon(PendingRequest& pending) noexcept {
  if (forget(pending)) return true;
  wait(pending);  // another thread is handling the reply at this moment
  return false;
}

// Returns false if the reply has come meanwhile.
bool Requests::forget(PendingRequest& pending) noexcept {
  const std::lock_guard guard(lock_);
  if (pending_[pending.ticket_.index] != &pending) return false;
  pending_[pending.ticket_.index] = nullptr;
  engine_.tickets().give_back(pending.ticket_.index);
  pending.reply_.kind = {};
  pending.done_.store(true, std::memory_order_relaxed);
  return true;
}

std::span<const std::byte> Requests::tail_of(const PendingRequest& pending) const noexcept {
  if (!pending.reply().kind.has_tail()) return {};
  const auto tail = pending.reply().as<Tail>();
  return engine_.look(pending.peer(), tail.place, tail.bytes);
}

void Requests::give_back_tail(const PendingRequest& pending) noexcept {
  if (pending.reply().kind.has_tail()) engine_.give_back(pending.peer(), pending.reply().as<Tail>().place);
}

void Requests::receive(const Head& reply) noexcept {
  if (PendingRequest* const pending = take(reply)) return end(*pending, Status::ok);
  if (reply.kind.has_tail() && reply.source < static_cast<std::uint32_t>(engine_.session().size())) {
    engine_.give_back(static_cast<int>(reply.source), reply.as<Tail>().place);
  }
}

// Returns the request of a reply, or null if no thread waits for it (any more), or the reply is malformed.
PendingRequest* Requests::take(const Head& reply) noexcept {
  const Tickets::Ticket ticket = ticket_of(reply);
  if (ticket.index >= tickets_max) return nullptr;
  const std::lock_guard guard(lock_);
  PendingRequest* const pending = pending_[ticket.index];
  const bool known = pending != nullptr && pending->ticket_.generation == ticket.generation &&
                     pending->peer_ == static_cast<int>(reply.source) && pending->accepts(pending->asked_for_, reply);
  if (!known) return nullptr;
  pending_[ticket.index] = nullptr;
  pending->reply_ = reply;
  engine_.tickets().give_back(ticket.index);
  return pending;
}

void Requests::end(PendingRequest& pending, Status status) noexcept {
  pending.status_ = status;
  if (status != Status::ok) pending.reply_.kind = {};  // of an earlier use
  pending.answered();
  pending.done_.store(true, std::memory_order_release);  // publishes the reply and what answered() stored
}

void Requests::end_requests_to(int rank) noexcept {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    PendingRequest* lost = nullptr;
    {
      const std::lock_guard guard(lock_);
      if (pending_[i] == nullptr || pending_[i]->peer_ != rank) continue;
      lost = std::exchange(pending_[i], nullptr);
      engine_.tickets().give_back(lost->ticket_.index);
    }
    end(*lost, Status::peer_gone);
  }
}

}  // namespace tonari::fabric
