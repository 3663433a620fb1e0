#include "message/message_runtime.hpp"
#include "message/user_data.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

// The part of MessageRuntime that moves announced payloads in pieces: to other hosts, and within a host if direct
// copies are impossible.
namespace tonari::message {

using fabric::Head;
using fabric::Lane;
using fabric::Step;

// The sender.

// Sends pieces through bulk memory as long as there is room, if neither direct copies nor sends from the user's buffer
// are possible.
Step MessageRuntime::send_pieces(Operation& operation) noexcept {
  const bool by_network =
      engine_.is_remote(operation.call.peer) && operation.scattered == nullptr && !is_paged(operation);
  if (by_network) return send_remote_pieces(operation);
  const Terms& terms = operation.transfer.terms;
  while (operation.transfer.next_offset < terms.bytes) {
    const std::uint64_t bytes =
        std::min<std::uint64_t>(fabric::bulk_tail_bytes_max, terms.bytes - operation.transfer.next_offset);
    if (!operation.sending.holds_piece) {
      const auto place = engine_.bulk().allocate(bytes, operation.call.peer);
      if (!place) return Step::retry;
      copy_out(operation, operation.transfer.next_offset, engine_.bulk().at(*place), bytes);
      operation.head = envelope(Kind::piece, self_, operation.call.context_id, operation.call.tag);
      operation.head.set(Piece{bytes, place->value, operation.transfer.next_offset, operation.transfer.ticket});
      operation.sending.holds_piece = true;
    }
    const Status status = engine_.send(operation.call.peer, operation.head, Lane::request);
    if (status == Status::again) return Step::retry;
    if (status != Status::ok) break;  // died() completes the operation
    operation.sending.holds_piece = false;
    operation.transfer.next_offset += bytes;
  }
  return operation.ready() ? advance(operation) : Step::waiting;  // waits for `done`
}

// Sends pieces to another host directly from the user's buffer, as long as the network has room.
Step MessageRuntime::send_remote_pieces(Operation& operation) noexcept {
  const Terms& terms = operation.transfer.terms;
  while (operation.transfer.next_offset < terms.bytes) {
    const std::uint64_t bytes =
        std::min<std::uint64_t>(fabric::remote_piece_bytes_max, terms.bytes - operation.transfer.next_offset);
    Head head = envelope(Kind::piece, self_, operation.call.context_id, operation.call.tag);
    head.set(Piece{bytes, 0, operation.transfer.next_offset, operation.transfer.ticket});
    const Status status = engine_.send_from(operation.call.peer, head,
                                            {operation.call.buffer.data() + operation.transfer.next_offset, bytes},
                                            operation.sending.network_reads);
    if (status == Status::again) return Step::retry;
    if (status != Status::ok) break;  // died() completes the operation
    operation.transfer.next_offset += bytes;
  }
  return operation.ready() ? advance(operation) : Step::waiting;  // waits for `done`
}

// The receiver.

void MessageRuntime::piece(const Head& head) noexcept {
  const auto piece = head.as<Piece>();
  fabric::Sleeper* to_wake = nullptr;
  bool unwanted = true;  // true if the receive was abandoned
  {
    const std::lock_guard guard(lock_);
    Operation* const operation = incoming_.find(head.source, piece.ticket);
    if (operation != nullptr && operation->transfer.terms.road == Road::pieces) {  // otherwise it is malformed
      operation->pieces.push_back(piece);
      to_wake = sleeper_of(*operation);
      operation->signals.has_pieces.store(true, std::memory_order_release);
      note_change(*operation, operation->waking.changes);
      unwanted = false;
    }
  }
  if (unwanted) give_back(static_cast<int>(head.source), piece);
  if (to_wake != nullptr) to_wake->wake();
}

Step MessageRuntime::take_pieces(Operation& operation) noexcept {
  std::vector<Piece> pieces;
  operation.signals.has_pieces.store(
      false, std::memory_order_relaxed);  // a piece that arrives from here on is seen at the next call
  {
    const std::lock_guard guard(lock_);
    pieces.swap(operation.pieces);
  }
  const int peer = static_cast<int>(operation.head.source);
  for (const Piece& piece : pieces) {
    const auto payload = engine_.look(peer, piece.place, piece.bytes);
    const bool fits = !payload.empty() && piece.offset == operation.transfer.next_offset &&
                      piece.bytes <= operation.transfer.terms.bytes - piece.offset;
    if (!fits) continue;  // malformed: drop it
    copy_in(operation, piece.offset, payload.data(), payload.size());
    engine_.give_back(peer, piece.place);
    operation.transfer.next_offset += payload.size();
  }
  if (operation.transfer.next_offset < operation.transfer.terms.bytes)
    return operation.ready() ? Step::retry : Step::waiting;
  forget_incoming(operation);
  reply_done(peer, operation.transfer.ticket, Status::ok);
  return complete_receive(operation, Status::ok);
}

void MessageRuntime::give_back(int peer, const Piece& piece) noexcept {
  if (!engine_.look(peer, piece.place, piece.bytes).empty()) engine_.give_back(peer, piece.place);
}

}  // namespace tonari::message
