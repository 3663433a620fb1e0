#pragma once

#include <tonari/status.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

namespace tonari::fabric {

inline constexpr std::size_t head_bytes = 64;
inline constexpr std::size_t envelope_bytes = 16;
inline constexpr std::size_t inline_bytes_max = head_bytes - envelope_bytes;

/// What a head means to who receives it. The two top bits name the layer it is for: 0 is message, 1 is window, 2 is
/// share, 3 the engine itself.
enum class Kind : std::uint8_t {
  message_inline = 1,     ///< The payload is in the head.
  message_bulk = 2,       ///< The payload is in the sender's bulk memory: Tail.
  message_announced = 3,  ///< The payload is in the sender's own buffer: Announced.
  piece = 4,              ///< Part of an announced payload, in the sender's bulk memory: Piece.
  finish = 5,             ///< The sender copied the last of an announced payload: Outcome.
  grant = 6,              ///< Reply: the receive is posted, here is where the payload goes: Grant.
  done = 7,               ///< Reply: the receiver copied the last of an announced payload: Outcome.
  late = 8,               ///< All of an announced payload, now that bulk memory had room for it: Piece.
  credit = 62,            ///< Of an ordering transport, below the layers: never handed up (ordered.hpp).
  window_join = 64,  ///< To the first rank of a group: this one makes a window with it (window/create/rendezvous.hpp).
  window_made = 65,  ///< From the first rank: here is the window.
  window_access = 66,  ///< An access that only the owner of the memory can make (window/remote/target.hpp).
  window_done = 67,    ///< Reply: what became of it.
  window_help = 68,    ///< A long access under way, of which the owner may copy chunks: no reply.
  // Windows between hosts:
  window_told = 69,      ///< What this rank gives to a window that is being made (window/create/rendezvous.hpp).
  window_ready = 70,     ///< It has the window, or could not take part.
  window_push = 71,      ///< As window_access, with a tail.
  window_data = 72,      ///< Reply: as window_done, with a tail.
  window_freed = 73,     ///< This rank has freed its part.
  window_met = 74,       ///< This host has come to a barrier (window/sync/host_barrier.hpp).
  window_lock = 75,      ///< To a lock's home: a step of this rank's (window/locks/remote_locks.hpp).
  window_granted = 76,   ///< From a lock's home: what has come of it.
  window_returned = 77,  ///< To the owner of a part: this rank uses its key no more (window/remote/rdma_keys.hpp).
  // Shared arrays (share/coherence/requests.hpp):
  share_fetch = 128,    ///< To a page's home: a copy, please.
  share_pages = 129,    ///< Reply, with a tail: here they are.
  share_moved = 130,    ///< Reply: another rank is their home.
  share_changes = 131,  ///< To a home, with a tail: what this rank has changed.
  share_taken = 132,    ///< Reply: done, and nobody has copies.
  share_copies = 133,   ///< Reply, with a tail: done, and these have copies.
  share_notice = 134,   ///< To who may have copies of pages: they have changed.
  share_notices = 135,  ///< The same, with a tail.
  share_noted = 136,    ///< Reply to a notice.
  share_update = 138,   ///< To who may have copies, with a tail: what has changed.
  share_told = 137,     ///< To a home, with a tail: who has been told; no reply.
  // Flags (share/sync/flag_home.hpp):
  share_await = 139,    ///< To a flag's home: tell this rank once it is at least that.
  share_reached = 140,  ///< Reply: it is.
  share_set = 141,      ///< To a flag's home: it was set, look whom to tell; no reply.
  share_gone = 142,     ///< Reply to a fetch or changes: the home has destroyed the array.
  // Guarded data (share/guarded/heads.hpp):
  guard_want = 160,        ///< To a variable's home: this rank wants to read or to write it, or drops its copy.
  guard_deed = 161,        ///< From the home to who owns it last, as far as was asked: serve that one.
  guard_given = 162,       ///< To who asked: leave to read, or ownership; perhaps with the data.
  guard_given_tail = 163,  ///< The same, with data as its tail, or part of them.
  guard_fetch = 164,       ///< To who has the data: put them, please.
  guard_more = 165,        ///< To who puts many pieces: some have been taken.
  guard_stop = 166,        ///< To readers: leave to read ends.
  guard_stopped = 167,     ///< From a reader, and all behind it: nobody reads.
  guard_inherit = 168,     ///< To the next owner: these are to be updated.
  guard_has = 169,         ///< To the home: this rank is the owner now.
  guard_waits = 170,       ///< To the home, after a death: this rank still waits.
  guard_lost = 171,        ///< To the home, and from it to all: the newest data died with a rank.
  guard_freed = 172,       ///< To the home: this rank needs it no more.
  guard_over = 173,        ///< From the home: nor does any other.
  rank_leaves = 192,       ///< To ranks of other hosts, the last of this one's: it calls nothing any more.
  rank_full = 193,     ///< To ranks of other hosts: it keeps all the unexpected messages it may (tag 1), or not (0).
  rank_watches = 194,  ///< To a rank of another host: a connection is all that it makes (failure_detector.hpp).
  rank_died = 195,     ///< To all: the rank that `tag` names, of another host than its watcher, has died.
  kept = 63,           ///< Never sent: an unexpected message whose payload its receiver moved (message/unexpected.hpp).
};
inline constexpr std::size_t protocols_count = 3;
constexpr std::size_t layer_of(Kind kind) noexcept { return static_cast<std::uint8_t>(kind) >> 6; }

// The unit of arrival: one cache line, little-endian. Offsets in bytes.
//
//   0        2      3        4         8          12        16                                64
//   +--------+------+--------+---------+----------+---------+----------------------------------+
//   | publish| kind | inline | source  | context  | tag     | payload, or a struct below       |
//   +--------+------+--------+---------+----------+---------+----------------------------------+
//
// publish  bits 0-1: the ring's lap; the head is there when it equals the lap its reader is in.
//          bits 2-15: the local rank that claimed the slot before this one (ring.hpp: gaps after a death).
// inline   bytes of payload in the head, 0 to inline_bytes_max.
// source   rank of the job. context: communicator. tag: the user's.
struct alignas(head_bytes) Head {
  std::uint16_t publish = 0;
  Kind kind{};
  std::uint8_t inline_bytes = 0;
  std::uint32_t source = 0;
  std::uint32_t context = 0;
  std::uint32_t tag = 0;
  std::array<std::byte, inline_bytes_max> payload;  // written and read only as far as `kind` and `inline_bytes` say

  template <class T>
  [[nodiscard]] T as() const noexcept {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= inline_bytes_max);
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }
  template <class T>
  void set(const T& value) noexcept {
    static_assert(std::has_unique_object_representations_v<T> && sizeof(T) <= inline_bytes_max);
    std::memcpy(payload.data(), &value, sizeof value);
  }
};
static_assert(sizeof(Head) == head_bytes && offsetof(Head, payload) == envelope_bytes);
static_assert(offsetof(Head, source) == 4 && offsetof(Head, context) == 8 && offsetof(Head, tag) == 12);
static_assert(std::has_unique_object_representations_v<Head>);
static_assert(std::endian::native == std::endian::little,
              "heads are little-endian: a big-endian host needs swaps here");

/// Payload in the sender's bulk memory.
struct Tail {
  std::uint64_t bytes;
  std::uint64_t place;  ///< Bulk::Place of the sender's bulk memory.
};

/// Payload that stays in the sender's buffer until the receive is posted. `ticket` and `generation` name the transfer
/// in all that follows.
struct Announced {
  std::uint64_t bytes;
  std::uint64_t address;  ///< In the sender's address space; or one of the next two.
  std::uint32_t ticket;
  std::uint32_t generation;
};
inline constexpr std::uint64_t has_gaps = 0;                        ///< Only the sender knows where it all lies.
inline constexpr std::uint64_t in_pieces_only = ~std::uint64_t{0};  ///< Only the sender may touch it: it is paged.

/// How an announced payload moves.
enum class Road : std::uint32_t {
  direct = 1,  ///< Straight between the two programs' memory, by both sides at once.
  pieces = 2,  ///< Through the sender's bulk memory, where direct copies are not permitted, or may not be.
};

struct Grant {
  std::uint32_t ticket;
  std::uint32_t generation;
  std::uint64_t address;  ///< Of the receiver's buffer, in its address space.
  std::uint64_t bytes;    ///< To copy: the smaller of message and buffer.
  Road road;
  std::uint32_t chunk_bytes;
};

struct Piece {
  std::uint32_t ticket;
  std::uint32_t generation;
  std::uint64_t offset;
  std::uint64_t place;
  std::uint64_t bytes;
};

struct Outcome {
  std::uint32_t ticket;
  std::uint32_t generation;
  std::uint32_t status;  ///< A tonari::Status.
  std::uint32_t reserved;
};

/// Where a head names the tail that goes with it: as offsets in its payload, of 8 bytes each.
struct TailName {
  std::size_t bytes;
  std::size_t place;
};
/// Nothing for kinds that have no tail.
constexpr std::optional<TailName> tail_name(Kind kind) noexcept {
  switch (kind) {
    case Kind::message_bulk: return TailName{offsetof(Tail, bytes), offsetof(Tail, place)};
    case Kind::piece:
    case Kind::late: return TailName{offsetof(Piece, bytes), offsetof(Piece, place)};
    case Kind::window_push: return TailName{8, 16};  // where window/remote/target.hpp has them
    case Kind::window_data:
    case Kind::share_pages:
    case Kind::share_changes:
    case Kind::share_copies:
    case Kind::share_notices:
    case Kind::share_update:
    case Kind::share_told:                               // where share/coherence/requests.hpp has them
    case Kind::guard_given_tail: return TailName{0, 8};  // and share/guarded/heads.hpp
    default: return std::nullopt;
  }
}
inline std::uint64_t read_payload(const Head& head, std::size_t offset) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, head.payload.data() + offset, sizeof word);
  return word;
}
inline void write_payload(Head& head, std::size_t offset, std::uint64_t word) noexcept {
  std::memcpy(head.payload.data() + offset, &word, sizeof word);
}

/// How a peer says that a copy went. Status::bounds when no copy goes so.
constexpr Status status_of(std::uint32_t number) noexcept {
  for (const Status each :
       {Status::ok, Status::bad_address, Status::peer_gone, Status::no_memory, Status::invalid, Status::denied}) {
    if (number == static_cast<std::uint32_t>(each)) return each;
  }
  return Status::bounds;
}

}  // namespace tonari::fabric
