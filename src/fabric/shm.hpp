#pragma once

#include "fabric/ring.hpp"
#include "fabric/transport.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tonari::fabric {

/// The functions that Shm needs to know about the other ranks of its host.
template <class N>
concept Neighbourhood = requires(N& neighbours, int rank) {
  { neighbours.alive(rank) }
  noexcept->std::same_as<bool>;  // once false, always false
  { neighbours.wake(rank) }
  noexcept;  // rings the doorbell of a rank that sleeps
};

/// The inbound rings of a rank.
struct Rings {
  RingMemory* requests;
  RingMemory* replies;
};

/// The transport within a host: rings in memory that all ranks of the host map.
///
/// Threads: send(), ask_for_room(): any. The rest: one at a time, the thread that polls.
/// Costs:   a send is one compare-exchange and one cache line; a poll that finds nothing reads two lines.
template <Neighbourhood N>
class Shm {
 public:
  /// `rings`: of all ranks, by rank. `requests_max`, `replies_max`: slots per ring, powers of two, at least 64.
  Shm(const std::vector<Rings>& rings, std::uint64_t requests_max, std::uint64_t replies_max, int self, N neighbours)
      : neighbours_(neighbours),
        replies_(*rings[static_cast<std::size_t>(self)].replies, replies_max, life()),
        requests_(*rings[static_cast<std::size_t>(self)].requests, requests_max, life()) {
    requests_to_.reserve(rings.size());
    replies_to_.reserve(rings.size());
    for (const Rings& of_peer : rings) {
      requests_to_.emplace_back(*of_peer.requests, requests_max, self);
      replies_to_.emplace_back(*of_peer.replies, replies_max, self);
    }
  }

  Status send(int peer, const Head& head, Lane lane) noexcept {
    if (!neighbours_.alive(peer)) [[unlikely]]
      return Status::peer_gone;
    const RingWriter::Pushed pushed = writer(peer, lane).push(head);
    if (pushed == RingWriter::Pushed::full) [[unlikely]]
      return Status::again;
    if (pushed == RingWriter::Pushed::yes_and_reader_sleeps) [[unlikely]]
      neighbours_.wake(peer);
    return Status::ok;
  }
  /// After `again`: has `peer` ring all doorbells when it has made room. Returns true if there is room already.
  bool ask_for_room(int peer, Lane lane) noexcept { return writer(peer, lane).ask_for_room(); }

  [[nodiscard]] bool is_asleep(int peer) const noexcept {
    return requests_to_[static_cast<std::size_t>(peer)].reader_sleeps();
  }
  /// Wakes `peer` if it sleeps: it may wait for a line that this rank has published (board.hpp).
  void wake_if_asleep(int peer) noexcept {
    if (is_asleep(peer)) [[unlikely]]
      neighbours_.wake(peer);
  }

  template <class Handle>
  std::size_t poll(std::size_t heads_max, Handle&& handle) noexcept {
    const std::size_t replies = replies_.poll(heads_max, handle);
    return replies + requests_.poll(heads_max, handle);
  }
  /// Whether room has been made, since the last call, for a writer that asked for it.
  bool room_made() noexcept {
    if (!requests_.room_made() && !replies_.room_made()) [[likely]]
      return false;
    requests_.forget_room_made();
    replies_.forget_room_made();
    return true;
  }
  /// Has the next poll look past slots that are claimed and not published. See RingReader.
  void expect_gap() noexcept {
    replies_.expect_gap();
    requests_.expect_gap();
  }
  /// Call before sleeping: from now on the next head wakes this rank. Returns false if a head is already under way,
  /// which would not.
  bool fall_asleep() noexcept {
    const bool replies_quiet = replies_.fall_asleep();
    const bool requests_quiet = requests_.fall_asleep();
    return replies_quiet && requests_quiet;
  }
  void wake_up() noexcept {
    replies_.wake_up();
    requests_.wake_up();
  }

 private:
  RingWriter& writer(int peer, Lane lane) noexcept {
    return (lane == Lane::request ? requests_to_ : replies_to_)[static_cast<std::size_t>(peer)];
  }
  auto life() noexcept {
    return [neighbours = neighbours_](int rank) mutable { return neighbours.alive(rank); };
  }

  N neighbours_;
  RingReader replies_;
  RingReader requests_;
  std::vector<RingWriter> requests_to_;  // by rank
  std::vector<RingWriter> replies_to_;   // by rank
};

}  // namespace tonari::fabric
