#pragma once

#include "fabric/head.hpp"

#include <cstdint>

namespace tonari::window {

using WindowKindNumber = fabric::KindNumber<fabric::Protocol::window>;

/// The heads of this layer.
enum class Kind : std::uint8_t {
  // Creation (window/create/rendezvous.hpp):
  /// To the first rank of a group: this rank takes part in making a window.
  window_join = WindowKindNumber::plain(0),
  /// From the first rank: the window is made.
  window_made = WindowKindNumber::plain(1),
  /// Between hosts: this rank's part of a window that is being made.
  window_told = WindowKindNumber::plain(5),
  /// Between hosts: this rank has the window, or could not take part.
  window_ready = WindowKindNumber::plain(6),
  /// This rank has freed its part.
  window_freed = WindowKindNumber::plain(9),

  // Accesses that only the target can make (window/remote/service.hpp):
  /// ServiceRequest.
  window_access = WindowKindNumber::plain(2),
  /// Between hosts: a ServiceRequest with a tail.
  window_push = WindowKindNumber::with_tail(7),
  /// ServiceReply.
  window_done = WindowKindNumber::plain(3),
  /// Between hosts: a ServiceReply with a tail.
  window_data = WindowKindNumber::with_tail(8),
  /// A long copy has begun, of which the target may copy chunks (window/local/assisted_copy.hpp). No reply.
  window_help = WindowKindNumber::plain(4),
  /// To the owner of a part: this rank no longer uses its key (window/remote/rdma_keys.hpp).
  window_returned = WindowKindNumber::plain(13),

  // Between hosts:
  /// The sender's host has arrived at a barrier (window/sync/host_barrier.hpp).
  window_met = WindowKindNumber::plain(10),
  /// To a lock's home: the next step of this rank's request (window/locks/remote_locks.hpp).
  window_lock = WindowKindNumber::plain(11),
  /// From a lock's home: what that step has led to.
  window_granted = WindowKindNumber::plain(12),
};

/// Returns a head of the window protocol from rank `source` that contains `body`. `window`: its number, if both sides
/// know it.
template <class Body>
fabric::Head head_of(Kind kind, int source, const Body& body, std::uint32_t window = 0) noexcept {
  fabric::Head head;
  head.kind = kind;
  head.inline_bytes = sizeof body;
  head.source = static_cast<std::uint32_t>(source);
  head.context = window;
  head.set(body);
  return head;
}

/// Returns a head whose kind says everything.
inline fabric::Head plain_head(Kind kind, int source, std::uint32_t window) noexcept {
  fabric::Head head{};
  head.kind = kind;
  head.source = static_cast<std::uint32_t>(source);
  head.context = window;
  return head;
}

}  // namespace tonari::window
