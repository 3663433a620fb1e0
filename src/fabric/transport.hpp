#pragma once

#include "fabric/head.hpp"

#include <tonari/status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace tonari::fabric {

/// Requests may find no room; a reply goes into room that its request reserved.
enum class Lane : std::uint8_t { request, reply };

/// What hands a head up: whatever takes one and does not throw. It never blocks, and sends at most one reply.
struct AnyHandler {
  void operator()(const Head& head) const noexcept;
};

// One rank's way to its peers. What compilers cannot check, and tests/contract does for every transport:
//
// - Order: of two heads to one peer in one lane, the one whose send returned before the other's began arrives first.
//   Nothing is promised between lanes or between senders.
// - Nothing is lost, doubled or changed, but for `publish`, which is the transport's own.
// - send() answers ok (the head is copied and will arrive), again (no room, nothing was sent; there will be once the
//   peer polls) or peer_gone (now and for ever). It never blocks, never throws.
// - Memory is bounded when it is made: what does not fit is told `again`. Each transport says how many replies it has
//   room for; a rank reserves it by having no more requests under way than they may be answered with.
// - A reply whose request reserved its room finds it, but for the moment in which another sender has claimed a slot and
//   lost its core before publishing it: then it is told `again`, and need wait for that sender alone.
// - A sender's flood delays another's head by what was accepted before it, not by what comes later.
// - poll() hands up at most `heads_max` heads of each lane, replies first, and answers how many in all.
//
// Threads: any may send, also from the handler. One at a time polls.
template <class T>
concept Transport = requires(T& transport, int peer, const Head& head, Lane lane, std::size_t heads_max,
                             AnyHandler handler) {
  { transport.send(peer, head, lane) }
  noexcept->std::same_as<Status>;
  { transport.poll(heads_max, handler) }
  noexcept->std::same_as<std::size_t>;
};

}  // namespace tonari::fabric
