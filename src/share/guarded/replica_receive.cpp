#include "share/guarded/heads.hpp"
#include "share/guarded/replica.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

// Messages from other ranks.
namespace tonari::share {

using fabric::Head;

void Replica::receive(const Head& head) noexcept {
  const std::lock_guard guard(mutex_);
  take(head);
  advance();
}

void Replica::retry() noexcept {
  {
    const std::lock_guard guard(mutex_);
    if (all_is_sent()) return;
    advance();
    if (!std::exchange(woke_, false)) return;
  }
  engine_.wake_self();  // a thread that this poll has already passed over
}

void Replica::take(const Head& head) noexcept {
  const int peer = static_cast<int>(head.source);
  switch (head.kind.to<Kind>()) {
    case Kind::guard_want: return take_want(peer, head.as<GuardWant>());
    case Kind::guard_deed: return take_deed(peer, head.as<GuardWant>());
    case Kind::guard_given: return take_given(head);
    case Kind::guard_given_tail: return take_piece(head);
    case Kind::guard_fetch:
      // A request while this rank writes is malformed.
      if (mover() == Mover::asker_asks && !lost_ && !writing_) give(peer, {GivenTag::data}, 0);
      return;
    case Kind::guard_more:
      if (!sendings_.empty() && sendings_.front().rank == peer) sendings_.front().allowed += pieces_told_of;
      return;
    case Kind::guard_stop: return take_stop(peer, head.as<GuardStop>());
    case Kind::guard_stopped: std::erase_if(children_, [peer](const Child& each) { return each.rank == peer; }); return;
    case Kind::guard_inherit: {
      const auto list = head.as<GuardList>();
      return stopped_.add(std::span(list.listed).first(std::min<std::size_t>(head.tag, list.listed.size())));
    }
    case Kind::guard_has:
      if (home_) home_->has(peer, head.as<GuardWord>().value);
      return;
    case Kind::guard_waits:
      if (home_ && !home_->survives_death_of(static_cast<int>(head.as<GuardWord>().value), peer)) lose();
      return;
    case Kind::guard_lost:
      if (home_ || is_home(peer)) lose();
      return;
    case Kind::guard_freed:
      if (home_ && home_->frees(peer)) take_over();
      return;
    case Kind::guard_over:
      if (is_home(peer)) be_over();
      return;
    default: return;  // malformed: drop it
  }
}

// At the home: passes a request to the rank that serves it.
void Replica::take_want(int peer, const GuardWant& want) noexcept {
  if (!home_ || want.rank != static_cast<std::uint32_t>(peer)) return;  // malformed: drop it
  const int server = home_->server_of(want);
  if (server >= 0) post(server, Kind::guard_deed, want);
}

void Replica::take_deed(int peer, const GuardWant& want) noexcept {
  const int rank = static_cast<int>(want.rank);
  const bool is_another = rank >= 0 && rank < engine_.session().size() && rank != self_;
  if (!is_home(peer) || !is_another || (!owner_ && asked_ != Wanted::to_write)) return;  // malformed: drop it
  const auto what = want.act == GuardAct::read    ? Turn::What::copy
                    : want.act == GuardAct::write ? Turn::What::ownership
                                                  : Turn::What::drop;
  queue_.push_back({what, Use::read, nullptr, rank, want.have});
}

void Replica::take_given(const Head& head) noexcept {
  const auto given = head.as<GuardGiven>();
  const auto tag = GivenTag::unpacked(head.tag);
  if ((tag.has_data && mover() == Mover::asker_gets) || (tag.in_place && !put_)) return;  // malformed: drop it
  const bool comes_along = tag.has_data && !tag.in_place;
  std::array<ShortRank, GuardGiven::listed_max> listed;
  std::memcpy(listed.data(), given.rest.data(), sizeof listed);
  const std::size_t count = comes_along ? 0 : std::min<std::size_t>(tag.listed, listed.size());
  if (tag.in_place) take_in_place(given.version);
  if (comes_along) store(given.version, 0, std::span(given.rest).first(std::min(plan_.bytes, given.rest.size())));
  take_gift(tag, given.version, given.epoch, given.source, std::span(listed).first(count));
}

void Replica::take_piece(const Head& head) noexcept {
  const auto piece = head.as<GuardPiece>();
  const auto tag = GivenTag::unpacked(head.tag);
  const int peer = static_cast<int>(head.source);
  const bool is_one = piece.number < pieces() && mover() != Mover::asker_gets;
  if (is_one) store(piece.version, piece.number, engine_.look(peer, piece.tail_place, piece.tail_bytes));
  engine_.give_back(peer, piece.tail_place);
  if (!is_one) return;  // malformed: drop it
  const bool is_last = piece.number + 1 == pieces();
  if (!is_last) {
    if ((piece.number + 1) % pieces_told_of == 0) post(peer, Kind::guard_more);
    return;
  }
  const std::size_t count = std::min<std::size_t>(tag.listed, piece.listed.size());
  take_gift(tag, piece.version, piece.epoch, piece.source, std::span(piece.listed).first(count));
}

// Several ranks may send the same piece of a version, each rank in order. So when the last piece has come from one of
// them, all pieces are here.
void Replica::store(std::uint64_t version, std::uint32_t piece, std::span<const std::byte> bytes) noexcept {
  if (version <= have_ || version < coming_ || readers_ != 0 || writing_) return;
  if (version != coming_) {
    coming_ = version;
    next_piece_ = 0;
    have_ = 0;
  }
  const std::size_t at = piece * GuardPiece::bytes_max;
  if (piece != next_piece_ || bytes.size() != std::min(plan_.bytes - at, GuardPiece::bytes_max)) return;
  std::memcpy(data_ + at, bytes.data(), bytes.size());
  if (++next_piece_ == pieces()) have_ = version;
}

void Replica::take_in_place(std::uint64_t version) noexcept {
  if (version > have_ && readers_ == 0 && !writing_) have_ = version;
}

// Passes permission to read, and perhaps data, on to the listed ranks. A writer does not: it has had all of them
// stopped. With data that are put, G9 holds: a stop that has overtaken this message has gone to those ranks, too. A
// rank that has dropped its copy would not be stopped, so it must not put.
void Replica::pass_on(GivenTag tag, std::uint64_t version, std::uint32_t epoch, ShortRank source,
                      std::span<const ShortRank> listed) noexcept {
  if (writing_ || (put_ && epoch < epoch_)) return;
  tag.in_place = false;
  if (put_ && dropped_) tag.has_data = false;  // they have to ask themselves
  if (!tag.has_data || have_ == version) send_to_groups(alive_others(listed), {-1, tag, version, epoch, source});
}

void Replica::take_gift(const GivenTag& tag, std::uint64_t version, std::uint32_t epoch, ShortRank source,
                        std::span<const ShortRank> listed) noexcept {
  if (lost_) return;
  if (source >= engine_.session().size()) return;  // malformed: drop it
  if (tag.what == GivenTag::data) {
    fetching_ = false;
    return;
  }
  if (tag.what == GivenTag::ownership) {
    if (asked_ != Wanted::to_write && !home_gone_) return;  // malformed: drop it
    owner_ = true;
    awaits_update_ = dropped_ = has_read_ = false;
    stopped_.remove(self_);
    post(plan_.options.home.value(), Kind::guard_has, GuardWord{asks_});
  } else {
    pass_on(tag, version, epoch, source, listed);
    if (tag.asked_for) dropped_ = false;
    // Permission to read is void if a later stop has overtaken it; a thread that needs it asks again.
    const bool is_void = epoch < epoch_ || owner_ || dropped_;
    if (tag.asked_for && asked_ == Wanted::to_read) asked_ = Wanted::nothing;
    if (is_void) return;
    if (mover() == Mover::owner_puts && !tag.has_data &&
        have_ != version) {  // the rank that should pass the data on has dropped them
      awaits_update_ = false;
      return;
    }
    valid_ = true;
    awaits_update_ = false;
  }
  if (tag.what == GivenTag::ownership) asked_ = Wanted::nothing;
  epoch_ = std::max(epoch_, epoch);
  version_ = version;
  source_ = source;
  if (has_data() || mover() != Mover::asker_asks || std::exchange(fetching_, true)) return;
  post(source_, Kind::guard_fetch);
}

void Replica::take_stop(int parent, const GuardStop& body) noexcept {
  if (owner_) return;  // malformed: drop it
  epoch_ = std::max(epoch_, body.epoch);
  stopping_ = true;
  parent_ = parent;
  later_ = body.is_updated_later;
  awaits_update_ = later_ != 0 && !dropped_;
  stop(alive_others(std::span(body.listed).first(std::min<std::size_t>(body.count, body.listed.size()))));
}

// At the home: no rank needs the variable any more.
void Replica::take_over() noexcept {
  tell_all(Kind::guard_over);
  be_over();
}

void Replica::be_over() noexcept {
  over_ = true;
  sendings_.clear();
}

void Replica::tell_lost() noexcept { post(plan_.options.home.value(), Kind::guard_lost); }

void Replica::lose() noexcept {
  if (std::exchange(lost_, true)) return;
  if (home_) tell_all(Kind::guard_lost);
  owner_ = valid_ = stopping_ = awaits_update_ = false;
  asked_ = Wanted::nothing;
  children_.clear();
  sendings_.clear();
  fail_local();
  queue_.clear();
}

void Replica::died(int rank) noexcept {
  const std::lock_guard guard(mutex_);
  copies_.remove(rank);
  stopped_.remove(rank);
  awaits_update_ = false;  // the dead rank may have been the one to pass the update on
  std::erase_if(sendings_, [rank](const Sending& each) { return each.rank == rank; });
  std::vector<ShortRank> below;
  std::erase_if(children_, [&](const Child& each) {
    if (each.rank != rank) return false;
    below.insert(below.end(), each.below.begin(), each.below.end());
    return true;
  });
  stop(alive_others(below));
  if (mover() == Mover::asker_asks && source_ == rank && std::exchange(fetching_, false)) {
    if (owner_) tell_lost();
    valid_ = false;  // the owner has the data, or the data are lost
  }
  if (rank == plan_.options.home.value()) {
    home_gone_ = true;
    asked_ = Wanted::nothing;
  } else if (asked_ != Wanted::nothing) {
    post(plan_.options.home.value(), Kind::guard_waits, GuardWord{static_cast<std::uint64_t>(rank)});
  }
  if (home_ && !home_->survives_death_of(rank)) lose();
  if (home_ && home_->frees(rank)) take_over();
  advance();
}

}  // namespace tonari::share
