#include "share/guarded/heads.hpp"
#include "share/guarded/replica.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

// Messages to other ranks.
namespace tonari::share {

using fabric::Head;

template <class Body>
void Replica::post(int peer, Kind kind, const Body& body, std::uint32_t tag, fabric::Wakeup wakeup) noexcept {
  Head head;
  head.kind = kind;
  head.inline_bytes = sizeof body;
  head.source = static_cast<std::uint32_t>(self_);
  head.context = plan_.number;
  head.tag = tag;
  head.set(body);
  if (peer == self_) return to_self_.push_back(head);
  send_queue_.post(peer, head, fabric::Lane::request);
  if (wakeup == fabric::Wakeup::now) engine_.wake_peer(peer);
}
template void Replica::post(int, Kind, const GuardWant&, std::uint32_t, fabric::Wakeup) noexcept;
template void Replica::post(int, Kind, const GuardWord&, std::uint32_t, fabric::Wakeup) noexcept;
template void Replica::post(int, Kind, const GuardList&, std::uint32_t, fabric::Wakeup) noexcept;

void Replica::tell_all(Kind kind) noexcept {
  for (int rank = 0; rank < engine_.session().size(); ++rank) {
    if (rank != self_) post(rank, kind);
  }
}

// Queues permission to read, ownership or only the data for a rank. `have`: the version that the rank has already.
void Replica::give(int rank, GivenTag tag, std::uint64_t have) noexcept {
  tag.has_data = tag.what == GivenTag::data || (mover() == Mover::owner_puts && have != version_);
  const int source = has_data() ? self_ : source_;
  sendings_.push_back({rank, tag, version_, epoch_, static_cast<ShortRank>(source)});
}

// Returns true if it has sent something. Finishes one sending before the next, so that they do not compete for room.
bool Replica::send() noexcept {
  bool sent = false;
  while (!sendings_.empty() && send_front()) {
    sendings_.pop_front();
    sent = true;
  }
  if (sendings_.empty() && put_) (void)put_->end();
  return sent;
}

// A rank that did not ask, and has nothing to pass on, is not woken: it handles the message when it locks next. But it
// is woken if the message occupies room that other messages need.
fabric::Wakeup Replica::wakeup_for(const Sending& sending) noexcept {
  const bool is_awaited = sending.tag.asked_for || !sending.listed.empty() || pieces() > pieces_ahead_max;
  return is_awaited || !engine_.bulk().has_plenty() ? fabric::Wakeup::now : fabric::Wakeup::later;
}

// Returns true when the front of sendings_ is sent completely.
bool Replica::send_front() noexcept {
  Sending& sending = sendings_.front();
  if (!is_alive(sending.rank)) return true;
  GivenTag tag = sending.tag;
  if (tag.has_data && put_) {
    const Status status = put(sending);
    if (status != Status::ok) return status != Status::again;  // a dead rank needs no head
    tag.in_place = true;
  }
  const bool fits = plan_.bytes <= GuardGiven::data_bytes_max && sending.listed.empty();
  if (tag.has_data && !tag.in_place && !fits) return send_pieces(sending);
  GuardGiven given{sending.version, sending.epoch, sending.source, 0, {}};
  if (tag.has_data && !tag.in_place) {
    std::memcpy(given.rest.data(), data_, plan_.bytes);
  } else {
    tag.listed = static_cast<std::uint32_t>(sending.listed.size());
    const auto listed = std::as_bytes(std::span(sending.listed));
    std::ranges::copy(listed, given.rest.begin());
  }
  post(sending.rank, Kind::guard_given, given, tag.packed(), wakeup_for(sending));
  return true;
}

// Returns again until the data are in place.
Status Replica::put(Sending& sending) noexcept {
  if (!sending.begun) {
    if (put_->end() == Status::again) return Status::again;  // an earlier put, for a rank that has died
    put_->start(sending.rank);
  }
  const Status status = put_->end();
  sending.begun = status != Status::no_memory;
  return sending.begun ? status : Status::again;
}

bool Replica::send_pieces(Sending& sending) noexcept {
  for (; sending.piece < pieces(); ++sending.piece) {
    if (sending.piece == sending.allowed || !send_piece(sending)) return false;
  }
  return true;
}

// Returns false if there is no room.
bool Replica::send_piece(Sending& sending) noexcept {
  const std::size_t at = sending.piece * GuardPiece::bytes_max;
  const std::size_t bytes = std::min(plan_.bytes - at, GuardPiece::bytes_max);
  const auto block = engine_.bulk().allocate(bytes, sending.rank);
  if (!block) return false;
  std::memcpy(engine_.bulk().at(*block), data_ + at, bytes);
  GuardPiece piece{bytes, block->value, sending.version, sending.epoch, sending.piece, sending.source, {}};
  GivenTag tag = sending.tag;
  if (sending.piece + 1 == pieces()) {
    tag.listed = static_cast<std::uint32_t>(sending.listed.size());
    std::ranges::copy(sending.listed, piece.listed.begin());
  }
  post(sending.rank, Kind::guard_given_tail, piece, tag.packed(), wakeup_for(sending));
  return true;
}

void Replica::send_to_groups(std::span<const ShortRank> ranks, const Sending& pattern) noexcept {
  const std::size_t listed_max = pattern.tag.has_data ? GuardPiece::listed_max : GuardGiven::listed_max;
  in_groups(ranks, plan_.branches, listed_max, [&](ShortRank first, std::span<const ShortRank> others) {
    Sending& sending = sendings_.emplace_back(pattern);
    sending.rank = first;
    sending.listed.assign(others.begin(), others.end());
  });
}

// Gives all ranks that could read before the last writes the new data, and permission to read.
void Replica::update_copies() noexcept {
  const std::vector<ShortRank> ranks = alive_others(stopped_.ranks());
  stopped_.clear();
  copies_.add(ranks);
  GivenTag tag;
  tag.has_data = mover() == Mover::owner_puts;
  const int source = has_data() ? self_ : source_;
  send_to_groups(ranks, {-1, tag, version_, epoch_, static_cast<ShortRank>(source)});
}

// Returns true if no rank except this one and `except` may read. Otherwise begins a round of stops, or continues it.
bool Replica::stop_readers(int except, fabric::Wakeup wakeup) noexcept {
  copies_.remove(except);
  if (!children_.empty()) return false;
  if (copies_.empty()) return true;
  ++epoch_;
  later_ = updates() && !tried_ ? 1 : 0;
  const std::vector<ShortRank> ranks = alive_others(copies_.ranks());
  stopped_.add(ranks);
  copies_.clear();
  stop(ranks, wakeup);
  return children_.empty();
}

void Replica::stop(std::span<const ShortRank> ranks, fabric::Wakeup wakeup) noexcept {
  in_groups(ranks, plan_.branches, GuardStop::listed_max, [&](ShortRank first, std::span<const ShortRank> others) {
    children_.push_back({first, {others.begin(), others.end()}});
    GuardStop body{epoch_, later_, static_cast<std::uint16_t>(others.size()), {}};
    std::ranges::copy(others, body.listed.begin());
    post(first, Kind::guard_stop, body, 0, wakeup);
  });
}

// Reports a stop as done, once no thread reads here, all ranks below have reported it, and they have all that this rank
// sends them.
void Replica::tell_stopped() noexcept {
  if (!stopping_ || readers_ != 0 || fetching_ || !children_.empty() || !sendings_.empty()) return;
  stopping_ = false;
  post(parent_, Kind::guard_stopped);
}

std::vector<ShortRank> Replica::alive_others(std::span<const ShortRank> ranks) const {
  std::vector<ShortRank> result(ranks.begin(), ranks.end());
  std::erase_if(result, [this](ShortRank rank) {
    return rank >= engine_.session().size() || rank == self_ || !is_alive(rank);  // the first two: malformed
  });
  return result;
}

}  // namespace tonari::share
