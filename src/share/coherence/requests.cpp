#include "share/coherence/requests.hpp"

#include <mutex>
#include <utility>

namespace tonari::share {

using fabric::BulkPlace;
using fabric::Head;
using fabric::Lane;

namespace {

bool has_tail(fabric::HeadKind kind) noexcept { return kind.has_tail(); }

bool is_reply_to(Kind request, Kind reply) noexcept {
  switch (request) {
    case Kind::share_fetch:
      return reply == Kind::share_pages || reply == Kind::share_moved || reply == Kind::share_gone;
    case Kind::share_changes:
      return reply == Kind::share_taken || reply == Kind::share_copies || reply == Kind::share_gone;
    case Kind::share_await: return reply == Kind::share_reached;
    default: return reply == Kind::share_noted;
  }
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
  for (int rank = 0; rank < engine_.session().size(); ++rank)
    engine_.wake_peer(rank);  // other ranks hold blocks that they have not read yet
  try_until_done(engine_, attempt, Waiter::program);
  return found;
}

void Requests::give_back(BulkPlace block) noexcept {
  fabric::BulkReader::give_back(engine_.bulk_of(engine_.session().rank()), block);
}

Status Requests::send(int peer, const Head& head, Waiter waiter, fabric::Wakeup wakeup) noexcept {
  Status sent = engine_.send(peer, head, Lane::request);
  if (sent == Status::again) {
    engine_.wake_peer(peer);  // it makes room when it reads its heads
    try_until_done(
        engine_, [&] { return (sent = engine_.send(peer, head, Lane::request)) != Status::again; }, waiter);
  }
  if (sent == Status::ok) {
    if (wakeup == fabric::Wakeup::now) engine_.wake_peer(peer);
  } else if (has_tail(head.kind)) {
    give_back(BulkPlace{head.as<Words>().tail_place});
  }
  return sent;
}

void Requests::expect(PendingRequest& asked, int peer, Kind kind, fabric::Tickets::Ticket ticket,
                      Words& words) noexcept {
  asked.ticket_ = ticket;
  asked.peer_ = peer;
  asked.asked_for_ = kind;
  asked.done_.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard guard(lock_);
    asked_[ticket.index] = &asked;
  }
  words.ticket = ticket.index;
  words.generation = ticket.generation;
}

void Requests::ask(PendingRequest& asked, int peer, Kind kind, Words words, Waiter waiter,
                   fabric::Wakeup wakeup) noexcept {
  auto ticket = engine_.tickets().take();
  if (!ticket)
    try_until_done(
        engine_, [&] { return (ticket = engine_.tickets().take()).has_value(); }, waiter);
  expect(asked, peer, kind, *ticket, words);
  // If the peer is gone, the request ends with peer_gone, here or by the service thread, whichever is first.
  if (send(peer, head_of(kind, engine_.session().rank(), words), waiter, wakeup) != Status::ok) gone(peer);
}

bool Requests::try_ask(PendingRequest& asked, int peer, Kind kind, Words words, unsigned spare) noexcept {
  const auto ticket = engine_.tickets().take(spare);
  if (!ticket) return false;
  expect(asked, peer, kind, *ticket, words);
  const Status sent = engine_.send(peer, head_of(kind, engine_.session().rank(), words), Lane::request);
  if (sent == Status::ok) {
    engine_.wake_peer(peer);
    return true;
  }
  if (sent == Status::again && forget(asked)) return false;
  if (has_tail(kind)) give_back(BulkPlace{words.tail_place});
  gone(peer);
  return true;
}

bool Requests::abandon(PendingRequest& asked) noexcept {
  if (forget(asked)) return true;
  wait(asked);  // another thread is handling the reply at this moment
  return false;
}

// Returns false if the reply has come meanwhile.
bool Requests::forget(PendingRequest& asked) noexcept {
  const std::lock_guard guard(lock_);
  if (asked_[asked.ticket_.index] != &asked) return false;
  asked_[asked.ticket_.index] = nullptr;
  engine_.tickets().give_back(asked.ticket_.index);
  asked.done_.store(true, std::memory_order_relaxed);
  return true;
}

void Requests::tell(int peer, Kind kind, const Words& words, fabric::Wakeup wakeup) noexcept {
  (void)send(peer, head_of(kind, engine_.session().rank(), words), Waiter::program,
             wakeup);  // if the peer is gone, there is no need to tell it
}

void Requests::wait(const PendingRequest& asked, Waiter waiter) noexcept {
  const auto ready = [&asked] { return asked.is_done(); };
  if (waiter == Waiter::program) return fabric::wait_until(engine_, ready, job::Wait::window, asked.peer());
  wait_as_faults(engine_, ready);
}

void Requests::receive(const Head& reply) noexcept {
  const auto words = reply.as<Words>();
  if (PendingRequest* const asked = take(reply, words)) return end(*asked, Status::ok);
  if (has_tail(reply.kind) && reply.source < static_cast<std::uint32_t>(engine_.session().size())) {
    engine_.give_back(static_cast<int>(reply.source), words.tail_place);
  }
}

// Returns the request of a reply, or null if no thread waits for it (any more), or the reply is malformed.
PendingRequest* Requests::take(const Head& reply, const Words& words) noexcept {
  if (words.ticket >= fabric::tickets_max) return nullptr;
  const std::lock_guard guard(lock_);
  PendingRequest* const asked = asked_[words.ticket];
  const bool known = asked != nullptr && asked->ticket_.generation == words.generation &&
                     asked->peer_ == static_cast<int>(reply.source) &&
                     is_reply_to(asked->asked_for_, reply.kind.to<Kind>());
  if (!known) return nullptr;
  asked_[words.ticket] = nullptr;
  asked->kind_ = reply.kind.to<Kind>();
  asked->words_ = words;
  engine_.tickets().give_back(words.ticket);
  return asked;
}

void Requests::end(PendingRequest& asked, Status status) noexcept {
  asked.status_ = status;
  asked.answered();
  asked.done_.store(true, std::memory_order_release);  // publishes the reply and what answered() stored
}

void Requests::gone(int rank) noexcept {
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    PendingRequest* lost = nullptr;
    {
      const std::lock_guard guard(lock_);
      if (asked_[i] == nullptr || asked_[i]->peer_ != rank) continue;
      lost = std::exchange(asked_[i], nullptr);
      engine_.tickets().give_back(lost->ticket_.index);
    }
    end(*lost, Status::peer_gone);
  }
}

}  // namespace tonari::share
