#pragma once

#include "fabric/head.hpp"

#include <tonari/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace tonari::fabric {

/// A request may find no room. A reply goes into room that its request has reserved.
enum class Lane : std::uint8_t { request, reply };

/// Any callable that takes a head and does not throw. It must not block, and sends at most one reply.
struct AnyHandler {
  void operator()(const Head& head) const noexcept;
};

// The connection of one rank to its peers. A compiler cannot check the following; tests/contract does, for every
// transport:
//
// - Order: of two heads to one peer in one lane, the one whose send returned before the other's began arrives first.
//   Nothing is promised between lanes or between senders.
// - Heads are not lost, duplicated or changed, except for `publish`, which belongs to the transport.
// - send() returns ok (the head is copied and will arrive), again (no room, nothing was sent; there will be room once
//   the peer has polled) or peer_gone (from now on always). It never blocks and never throws.
// - The memory is bounded when the transport is constructed: a head that does not fit gets `again`. Each transport says
//   for how many replies it has room. A rank reserves room by limiting its requests under way to that many replies.
// - A reply finds the room that its request reserved, except while another sender has claimed a slot and has lost its
//   core before publishing it. Then send() returns `again`, and the reply waits for that sender only.
// - A flood from one sender delays the head of another by the heads accepted before it, not by later ones.
// - poll() hands up at most `heads_max` heads of each lane, replies first, and returns the number of both.
//
// Threads: any thread may send, also the handler. One thread at a time polls.
template <class T>
concept Transport = requires(T& transport, int peer, const Head& head, Lane lane, std::size_t heads_max,
                             AnyHandler handler) {
  { transport.send(peer, head, lane) }
  noexcept->std::same_as<Status>;
  { transport.poll(heads_max, handler) }
  noexcept->std::same_as<std::size_t>;
};

}  // namespace tonari::fabric
