#pragma once

#include "fabric/engine.hpp"
#include "window/remote/target.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tonari::window {

class WindowState;

// Long accesses while a thread of the owner's waits for something. The asker offers it a part in them, and both copy,
// chunk by chunk (fabric/transfer.hpp): each is copied by who comes first, so that an owner that turns to something
// else delays nobody. Two cores copy up to 2.4 times as fast as one.

/// What is mapped one copies without the system, so that it pays later.
inline constexpr std::uint64_t mapped_together_bytes_min = 512 * 1024;

struct HelpRequest {
  std::uint64_t offset;   // in the owner's part
  std::uint64_t address;  // of the asker's memory, in its program
  std::uint64_t bytes;
  std::uint64_t chunk_bytes;
  std::uint32_t ticket;  // the asker's
  std::uint32_t generation;
  Service service;  // pull or push, as the asker says it
  std::array<std::uint8_t, 7> reserved;
};
static_assert(sizeof(HelpRequest) == fabric::inline_bytes_max);

/// One access: `bytes` between `local` and `offset` of rank `peer`'s part, which lies at `there`: in its program, or
/// here if it is mapped.
struct LongAccess {
  Service service;
  std::uint32_t window;
  int peer;
  std::uint64_t offset;
  std::uint64_t there;
  bool mapped;
  std::byte* local;  // only read by a push
  std::uint64_t bytes;
};

/// Makes it, with the owner if it comes. Answers ok, bad_address, peer_gone. Nothing: it pays not, or nobody can be
/// asked now; nothing is copied then.
///
/// Threads: any.
std::optional<Status> copy_together(fabric::Engine& engine, const LongAccess& access) noexcept;

/// The owner's side: copies one chunk, since what it waits for may have come. `access`: to the window that is named, or
/// null when there is none. True when there may be more to copy.
///
/// Threads: any, with nothing held.
bool help(fabric::Engine& engine, const WindowState* access, const fabric::Head& head) noexcept;

}  // namespace tonari::window
