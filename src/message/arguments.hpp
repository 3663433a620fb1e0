#pragma once

#include "job/group.hpp"
#include "message/context.hpp"

#include <tonari/message.hpp>

#include <cstddef>
#include <span>

// Checks of the arguments of point-to-point calls. Ranks are ranks of the communicator.
namespace tonari::message {

inline bool valid_send(const Context& context, std::span<const std::byte> bytes, int destination, int tag,
                       SendMode mode) noexcept {
  if (mode != SendMode::standard && mode != SendMode::when_posted) return false;
  return destination >= 0 && destination < context.peers().size() && tag >= 0 &&
         (bytes.data() != nullptr || bytes.empty());
}

inline bool valid_probe(const Context& context, int source, int tag) noexcept {
  return source >= Rank::any.value() && source < context.peers().size() && tag >= Tag::any.value();
}

inline bool valid_receive(const Context& context, std::span<const std::byte> buffer, int source, int tag) noexcept {
  return valid_probe(context, source, tag) && (buffer.data() != nullptr || buffer.empty());
}

/// Returns the job rank; Rank::any stays -1.
inline int peer_of(const Context& context, int rank) noexcept {
  return rank < 0 ? rank : job::rank_at(context.peers(), rank);
}

}  // namespace tonari::message
