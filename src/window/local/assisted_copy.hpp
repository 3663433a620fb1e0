#pragma once

#include "fabric/engine.hpp"
#include "window/local/direction.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tonari::window {

class WindowState;

// Assisted copies: long accesses while a thread of the target waits for something. The origin offers the target a part
// of the work, and both copy chunk by chunk (fabric/transfer.hpp). Each chunk is copied by the side that claims it
// first, so that a target that turns to something else delays nobody. Two cores copy up to 2.4 times as fast as one.

/// Mapped memory is copied without system calls, so help from the target pays off only for longer copies.
using detail::copied_together_bytes_min;

struct HelpRequest {
  std::uint64_t offset;   // in the target's part
  std::uint64_t address;  // of the origin's memory, in its program
  std::uint64_t bytes;
  std::uint64_t chunk_bytes;
  fabric::Tickets::Ticket ticket;  // the origin's
  Service service;                 // pull or push, from the origin's point of view
  std::array<std::uint8_t, 7> reserved;
};
static_assert(sizeof(HelpRequest) == fabric::inline_bytes_max);

/// One access, between `local` and `offset` in rank `peer`'s part. `there` is the address of that place: in the
/// peer's program, or here if it is mapped.
template <Direction D>
struct LongAccess {
  std::uint32_t window;
  int peer;
  std::uint64_t offset;
  std::uint64_t there;
  bool mapped;
  std::span<typename D::Local> local;
};

/// Makes an access, with the target's help if it comes. Returns ok, bad_address or peer_gone. Returns nullopt, and
/// copies nothing, if help does not pay off or cannot be asked for now.
///
/// Threads: any.
template <Direction D>
std::optional<Status> copy_together(fabric::Engine& engine, const LongAccess<D>& access) noexcept;

/// The target's side: copies one chunk, and returns to let the caller check what it waits for. `state`: the window
/// that is named, or nullptr. Returns true if there may be more to copy.
///
/// Threads: any, with no lock held.
bool help(fabric::Engine& engine, const WindowState* state, const fabric::Head& head) noexcept;

}  // namespace tonari::window
