#include "window/remote/copies.hpp"

#include "window/local/checked_copy.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tonari::window {

using fabric::BulkPlace;

namespace {

constexpr std::uint64_t tail_bytes_max = fabric::bulk_tail_bytes_max;
// Returns the base of a stretch's offset: the rest fits into 32 bits.
constexpr std::uint64_t base_of(std::uint64_t place) noexcept { return place & ~std::uint64_t{0xffffffff}; }

}  // namespace

// Advances by at most `bytes_max` bytes of the first region. Returns how many.
template <Direction D>
std::uint64_t RemoteCopies<D>::Cursor::take(std::uint64_t bytes_max) noexcept {
  const std::uint64_t bytes = std::min(regions.front().bytes - done, bytes_max);
  done += bytes;
  skip_empty();
  return bytes;
}

template <Direction D>
void RemoteCopies<D>::start(const RemotePlace& target, Local* local, std::span<const Region> regions,
                            bool go_on) noexcept {
  Cursor cursor{local, regions};
  cursor.skip_empty();
  while (!cursor.regions.empty() && (go_on || status_ == Status::ok)) {
    Piece& piece = next_piece();
    piece.in_program = target.in_program;
    cursor = plan(piece, cursor);
    ask(piece, target, 0);
  }
}

template <Direction D>
void RemoteCopies<D>::start_notified(const RemotePlace& target, std::span<Local> from,
                                     std::uint32_t notification) noexcept {
  Piece& piece = next_piece();
  const Region all{0, from.size()};
  piece.in_program = target.in_program;
  piece.start = {from.data(), std::span(&all, 1)};
  piece.stretches = 1;
  piece.bytes = from.size();
  ask(piece, target, notification);
  piece.start = {};
}

template <Direction D>
Status RemoteCopies<D>::end() noexcept {
  under_way_.end_all([this](Piece& piece) { end(piece); });
  return status_;
}

template <Direction D>
typename RemoteCopies<D>::Piece& RemoteCopies<D>::next_piece() noexcept {
  return under_way_.next([this](Piece& piece) { end(piece); });
}

// Plans one stretch that fills a tail, or several that share one. Returns where the next piece begins.
template <Direction D>
typename RemoteCopies<D>::Cursor RemoteCopies<D>::plan(Piece& piece, Cursor cursor) noexcept {
  piece.start = cursor;
  piece.stretches = 0;
  piece.bytes = 0;
  const bool alone = cursor.regions.size() == 1 || cursor.regions.front().bytes - cursor.done >= tail_bytes_max;
  const std::uint64_t base = base_of(cursor.place());
  std::uint64_t room = tail_bytes_max;
  do {
    const std::uint64_t listed = alone ? 0 : sizeof(Stretch);
    const std::uint64_t bytes = cursor.take(room - listed);
    room -= bytes + listed;
    piece.bytes += bytes;
    ++piece.stretches;
  } while (!alone && !cursor.regions.empty() && room > sizeof(Stretch) && base_of(cursor.place()) == base);
  return cursor;
}

template <Direction D>
void RemoteCopies<D>::ask(Piece& piece, const RemotePlace& target, std::uint32_t notification) noexcept {
  fabric::Requests& requests = origin_.requests();
  piece.pending.takes_tail = is_pull<D>;
  const bool listed = piece.stretches > 1;
  const std::uint64_t place = piece.start.regions.empty() ? 0 : piece.start.place();
  const std::uint64_t base = listed ? base_of(place) : place;
  ServiceRequest request{};
  request.service = D::service;
  request.offset = target.offset + base;
  request.bytes = static_cast<std::uint32_t>(piece.bytes);
  const RequestExtras extras{listed ? static_cast<std::uint32_t>(piece.stretches) : 0, notification};
  request.words.back() = std::bit_cast<std::uint64_t>(extras);
  const std::uint64_t data_bytes = is_pull<D> ? 0 : piece.bytes;
  const std::uint64_t tail_bytes = (listed ? piece.stretches * sizeof(Stretch) : 0) + data_bytes;
  Kind kind = Kind::window_access;
  piece.not_sent = Status::ok;
  if (!listed && data_bytes <= remote_carried_bytes_max) {
    if (data_bytes != 0) piece.not_sent = fill(piece, reinterpret_cast<std::byte*>(request.words.data()), base);
  } else {
    kind = Kind::window_push;
    const BulkPlace block = requests.allocate(tail_bytes, target.rank);
    request.words[0] = tail_bytes;
    request.words[1] = block.value;
    piece.not_sent = fill(piece, requests.at(block), base);
    if (piece.not_sent != Status::ok) requests.give_back(block);
  }
  if (piece.not_sent == Status::ok) origin_.ask(piece.pending, target.rank, window_, request, kind);
  under_way_.begin();
}

// Writes a tail: the list of stretches, if there are several, and the data of a push.
template <Direction D>
Status RemoteCopies<D>::fill(const Piece& piece, std::byte* tail, std::uint64_t base) noexcept {
  Cursor cursor = piece.start;
  std::byte* list = tail;
  if (piece.stretches > 1) tail += piece.stretches * sizeof(Stretch);
  Status status = Status::ok;
  for (std::uint64_t left = piece.bytes; left != 0 && status == Status::ok;) {
    const std::uint64_t place = cursor.place();
    const std::uint64_t bytes = cursor.take(left);
    left -= bytes;
    if (piece.stretches > 1) {
      const Stretch stretch{static_cast<std::uint32_t>(place - base), static_cast<std::uint32_t>(bytes)};
      std::memcpy(list, &stretch, sizeof stretch);
      list += sizeof stretch;
    }
    if constexpr (!is_pull<D>) {
      status = load_local(session_, piece.in_program, {tail, bytes}, piece.start.local + place);
      tail += bytes;
    }
  }
  return status;
}

template <Direction D>
void RemoteCopies<D>::end(Piece& piece) noexcept {
  Status status = piece.not_sent;
  if (status == Status::ok) {
    origin_.requests().wait(piece.pending);
    status = piece.pending.outcome();
    if (status == Status::ok) status = store_data(piece);
    origin_.requests().give_back_tail(piece.pending);
  }
  if (status_ == Status::ok) status_ = status;
}

// Copies the data that a pull has received to their places.
template <Direction D>
Status RemoteCopies<D>::store_data(Piece& piece) noexcept {
  if constexpr (is_pull<D>) {
    const Carried carried = piece.pending.words();
    const bool has_tail = piece.pending.reply().kind.has_tail();
    auto data = has_tail ? origin_.requests().tail_of(piece.pending) : std::as_bytes(std::span(carried));
    if (data.size() < piece.bytes) return Status::invalid;  // malformed
    Cursor cursor = piece.start;
    for (std::uint64_t left = piece.bytes; left != 0;) {
      const std::uint64_t place = cursor.place();
      const std::uint64_t bytes = cursor.take(left);
      left -= bytes;
      const Status status = store_local(session_, piece.in_program, piece.start.local + place, data.first(bytes));
      if (status != Status::ok) return status;
      data = data.subspan(bytes);
    }
  }
  return Status::ok;
}

template class RemoteCopies<Pull>;
template class RemoteCopies<Push>;

}  // namespace tonari::window
