#pragma once

#include "far/preload/program.hpp"

namespace tonari::far {

/// Makes this process one with far memory, with a keeper at the other end of `socket`, which is closed. Not when the
/// socket is not a keeper's. What fails the keeper is told, and ends the program. Once, before main().
/// Answers whether it is one.
bool begin(int socket) noexcept;

/// From now on the process may begin by itself, at the keeper's door, when it first asks for so much memory. `name`, of
/// the abstract namespace, stays. Once, before main().
void may_begin(const char* name, std::size_t bytes_min) noexcept;

/// What may_begin() has announced, or another thread does so. Answers whether the arena can be used: if not, the
/// process stays with local memory.
bool begin_at_door() noexcept;

/// The arena can be used, if need be from now on.
inline bool make_ready() noexcept {
  return is_ready() || (program.may_begin.load(std::memory_order_relaxed) && begin_at_door());
}

/// In a forked child, which has nothing of its parent's: it may begin as its parent did.
void begin_anew() noexcept;

}  // namespace tonari::far
