#pragma once

#include "fabric/requests.hpp"
#include "window/local/atomic_words.hpp"
#include "window/remote/heads.hpp"
#include "window/state/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tonari::window {

// Accesses that only the owner of the memory can make: if one program may not copy from another, atomic operations on a
// program's own memory, and all accesses between hosts. The origin sends a request and waits for the reply. Within a
// host, the data pass through the origin's bulk memory; between hosts they travel with the heads. The target checks
// everything again. It touches a program's memory without any lock, because that may be far memory and take long to
// arrive.
enum class Service : std::uint8_t { pull = 1, push = 2, atomic = 3, reach = 4, relay = 5, key = 6 };

// Copies up to this size travel in the heads themselves.
inline constexpr std::size_t carried_bytes_max = 24;
using Carried = std::array<std::uint64_t, carried_bytes_max / 8>;
/// The same for a push to another host, whose last word is taken by RequestExtras.
inline constexpr std::size_t remote_carried_bytes_max = 16;

struct ServiceRequest {
  // Push: its bytes, if they are few. Atomic operation: operand, expected. Otherwise a fabric::BulkPlace. Between
  // hosts: size and place of the tail, if there is one, and RequestExtras.
  Carried words;
  std::uint64_t offset;  // in the target's part
  std::uint32_t bytes;   // size of the whole copy
  Service service;
  detail::AtomicOperation operation;
  std::uint8_t carried;  // 1: a copy whose bytes are in the heads
  std::uint8_t reserved;
  fabric::Tickets::Ticket ticket;
};
struct ServiceReply {
  // Pull: its bytes, if they are few; otherwise size and place of the tail. Atomic operation: the old value.
  Carried words;
  std::uint32_t status;
  std::array<std::uint32_t, 3> reserved;
  fabric::Tickets::Ticket ticket;
};
static_assert(fabric::carries_ticket<ServiceRequest> && fabric::carries_ticket<ServiceReply>);
// A tail is named by the first two words.
static_assert(fabric::begins_with_tail(offsetof(ServiceRequest, words), offsetof(ServiceRequest, words) + 8));
static_assert(fabric::begins_with_tail(offsetof(ServiceReply, words), offsetof(ServiceReply, words) + 8));

/// The last word of a request from another host.
struct RequestExtras {
  /// Number of stretches that the tail begins with; 0: one stretch, at the request's offset. Relay: number of targets
  /// (multicast.hpp).
  std::uint32_t stretches;
  std::uint32_t notification;  ///< Push: 1 + the counter that counts it; 0: none.
};
/// A stretch of the target's part, from the request's offset on.
struct Stretch {
  std::uint32_t offset;
  std::uint32_t bytes;
};

/// The reply to `reach`, in its words.
struct Reached {
  std::uint64_t bytes;
  std::uint32_t locks;
  std::uint32_t notifications;
  Rights rights;
  std::uint8_t in_program;
  std::array<std::uint8_t, 6> reserved;
};
static_assert(sizeof(Reached) == sizeof(Carried));

}  // namespace tonari::window
