#pragma once

#include "fabric/head.hpp"
#include "fabric/transfer.hpp"

#include <cstddef>
#include <cstdint>

// The heads of messages: `context` is the communicator's number, `tag` the user's tag. Three ways of a message:
// inline (in the head), eager (through the sender's bulk memory) and rendezvous (announced; then RTS, CTS and FIN are
// message_announced, grant, and finish or done).
namespace tonari::message {

using MessageKindNumber = fabric::KindNumber<fabric::Protocol::message>;

enum class Kind : std::uint8_t {
  /// The payload is in the head.
  message_inline = MessageKindNumber::plain(1),
  /// The payload is the tail: fabric::Tail.
  message_bulk = MessageKindNumber::with_tail(2),
  /// The payload is still in the sender's own buffer: Announced.
  message_announced = MessageKindNumber::plain(3),
  /// The tail is a part of an announced payload: Piece.
  piece = MessageKindNumber::with_tail(4),
  /// The sender has copied the last part of an announced payload: Outcome.
  finish = MessageKindNumber::plain(5),
  /// Reply to message_announced: the receive is posted; says where the payload goes: Grant.
  grant = MessageKindNumber::plain(6),
  /// Reply: the receiver has copied the last part of an announced payload: Outcome.
  done = MessageKindNumber::plain(7),
  /// The tail is all of an announced payload, sent now because bulk memory has room for it: Piece.
  late = MessageKindNumber::with_tail(8),
  /// Never sent: an unexpected message whose payload its receiver has moved (message/unexpected.hpp).
  kept = MessageKindNumber::plain(31),
};

/// Names the transfer of an announced payload in all heads about it. The sender takes it.
using Ticket = fabric::Tickets::Ticket;

/// A payload that stays in the sender's buffer until the receive is posted.
struct Announced {
  std::uint64_t bytes;
  std::uint64_t address;  ///< In the sender's address space; or one of the next two.
  Ticket ticket;
};
inline constexpr std::uint64_t has_gaps = 0;  ///< The payload is scattered; only the sender knows its parts.
/// Only the sender may touch the payload, because its memory is paged.
inline constexpr std::uint64_t in_pieces_only = ~std::uint64_t{0};

/// How an announced payload moves.
enum class Road : std::uint32_t {
  direct = 1,  ///< Straight between the two programs' memory; both sides copy at once.
  pieces = 2,  ///< Through the sender's bulk memory, where direct copies are impossible or not permitted.
};

/// Where an announced payload goes, and how.
struct Terms {
  std::uint64_t address;  ///< Address of the receiver's buffer, in the receiver's address space.
  std::uint64_t bytes;    ///< To copy: the smaller of message and buffer.
  Road road;
  std::uint32_t chunk_bytes;
};

struct Grant {
  Ticket ticket;
  Terms terms;
};

struct Piece {
  std::uint64_t bytes;
  std::uint64_t place;
  std::uint64_t offset;  ///< In the message.
  Ticket ticket;
};
static_assert(fabric::begins_with_tail(offsetof(Piece, bytes), offsetof(Piece, place)));

struct Outcome {
  Ticket ticket;
  std::uint32_t status;  ///< A tonari::Status.
  std::uint32_t reserved;
};

/// Returns a head that has its envelope alone.
inline fabric::Head envelope(Kind kind, int source, std::uint32_t context_id, int tag) noexcept {
  fabric::Head head;
  head.kind = kind;
  head.source = static_cast<std::uint32_t>(source);
  head.context = context_id;
  head.tag = static_cast<std::uint32_t>(tag);
  return head;
}

/// True if the payload that the head announces has gaps at its sender, which then writes it.
inline bool has_gaps_there(const fabric::Head& head) noexcept { return head.as<Announced>().address == has_gaps; }

}  // namespace tonari::message
