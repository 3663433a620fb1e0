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
std::uint64_t RemoteCopies::Cursor::take(std::uint64_t bytes_max) noexcept {
  const std::uint64_t bytes = std::min(regions.front().bytes - done, bytes_max);
  done += bytes;
  skip_empty();
  return bytes;
}

void RemoteCopies::push(const Target& target, const std::byte* local, std::span<const Region> regions,
                        bool go_on) noexcept {
  start(Service::push, target, {const_cast<std::byte*>(local), regions}, go_on);  // only read
}

void RemoteCopies::pull(const Target& target, std::byte* local, std::span<const Region> regions) noexcept {
  start(Service::pull, target, {local, regions}, false);
}

void RemoteCopies::start(Service service, const Target& target, Cursor cursor, bool go_on) noexcept {
  cursor.skip_empty();
  while (!cursor.regions.empty() && (go_on || status_ == Status::ok)) {
    Piece& piece = next_piece();
    piece.in_program = target.in_program;
    cursor = plan(piece, cursor);
    ask(piece, service, target, 0);
  }
}

void RemoteCopies::push_notified(const Target& target, std::span<const std::byte> from,
                                 std::uint32_t notification) noexcept {
  Piece& piece = next_piece();
  const Region all{0, from.size()};
  piece.in_program = target.in_program;
  piece.start = {const_cast<std::byte*>(from.data()), std::span(&all, 1)};  // only read
  piece.stretches = 1;
  piece.bytes = from.size();
  ask(piece, Service::push, target, notification);
  piece.start = {};
}

Status RemoteCopies::end() noexcept {
  under_way_.end_all([this](Piece& piece) { end(piece); });
  return status_;
}

RemoteCopies::Piece& RemoteCopies::next_piece() noexcept {
  return under_way_.next([this](Piece& piece) { end(piece); });
}

// Plans one stretch that fills a tail, or several that share one. Returns where the next piece begins.
RemoteCopies::Cursor RemoteCopies::plan(Piece& piece, Cursor cursor) noexcept {
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

void RemoteCopies::ask(Piece& piece, Service service, const Target& target, std::uint32_t notification) noexcept {
  piece.is_pull = service == Service::pull;
  piece.pending.takes_tail = piece.is_pull;
  const bool listed = piece.stretches > 1;
  const std::uint64_t place = piece.start.regions.empty() ? 0 : piece.start.place();
  const std::uint64_t base = listed ? base_of(place) : place;
  ServiceRequest request{};
  request.service = service;
  request.offset = target.offset + base;
  request.bytes = static_cast<std::uint32_t>(piece.bytes);
  const Beside beside{listed ? static_cast<std::uint32_t>(piece.stretches) : 0, notification};
  request.words.back() = std::bit_cast<std::uint64_t>(beside);
  const std::uint64_t data_bytes = piece.is_pull ? 0 : piece.bytes;
  const std::uint64_t tail_bytes = (listed ? piece.stretches * sizeof(Stretch) : 0) + data_bytes;
  Status filled = Status::ok;
  Kind kind = Kind::window_access;
  if (!listed && data_bytes <= remote_carried_bytes_max) {
    if (data_bytes != 0) filled = fill(piece, reinterpret_cast<std::byte*>(request.words.data()), base, true);
  } else {
    kind = Kind::window_push;
    const BulkPlace block = client_.requests().allocate(tail_bytes, target.rank);
    request.words[0] = tail_bytes;
    request.words[1] = block.value;
    filled = fill(piece, client_.requests().at(block), base, !piece.is_pull);
    if (filled != Status::ok) client_.requests().give_back(block);
  }
  piece.not_sent = filled;
  if (filled == Status::ok) client_.ask(piece.pending, target.rank, window_, request, kind);
  under_way_.begin();
}

// Writes a tail: the list of stretches, if there are several, and the data of a push.
Status RemoteCopies::fill(const Piece& piece, std::byte* tail, std::uint64_t base, bool with_data) noexcept {
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
    if (with_data) {
      status = copy_local(session_, piece.in_program, piece.start.local + place, tail, bytes, false);
      tail += bytes;
    }
  }
  return status;
}

void RemoteCopies::end(Piece& piece) noexcept {
  Status status = piece.not_sent;
  if (status == Status::ok) {
    client_.requests().wait(piece.pending);
    status = piece.pending.outcome();
    if (piece.is_pull && status == Status::ok) status = take_data(piece);
    client_.requests().give_back_tail(piece.pending);
  }
  if (status_ == Status::ok) status_ = status;
}

// Copies the received data to their places.
Status RemoteCopies::take_data(Piece& piece) noexcept {
  const Carried carried = piece.pending.words();
  const bool has_tail = piece.pending.reply().kind.has_tail();
  const auto data = has_tail ? client_.requests().tail_of(piece.pending) : std::as_bytes(std::span(carried));
  if (data.size() < piece.bytes) return Status::invalid;  // malformed
  auto* from = const_cast<std::byte*>(data.data());       // only read
  Cursor cursor = piece.start;
  for (std::uint64_t left = piece.bytes; left != 0;) {
    const std::uint64_t place = cursor.place();
    const std::uint64_t bytes = cursor.take(left);
    left -= bytes;
    const Status status = copy_local(session_, piece.in_program, piece.start.local + place, from, bytes, true);
    if (status != Status::ok) return status;
    from += bytes;
  }
  return Status::ok;
}

}  // namespace tonari::window
