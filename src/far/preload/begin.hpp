#pragma once

#include "far/preload/program.hpp"

namespace tonari::far {

/// Gives this process far memory, with the keeper at the other end of `socket`, which is closed. On an error the keeper
/// is told and ends the program. Call it once, before main(). Returns false if the socket is not a keeper's, or on an
/// error.
bool begin(int socket) noexcept;

/// Lets the process begin by itself later, at the keeper's door, when it first allocates at least `bytes_min`. `name`
/// is of the abstract namespace. `faults` will serve its faults. Call it once, before main().
void may_begin(const char* name, std::size_t bytes_min, FaultsBy faults) noexcept;

/// Begins as announced by may_begin(), unless another thread has done so. Returns true if the arena can be used; if
/// not, the process stays with local memory.
bool begin_at_door() noexcept;

/// Returns true if the arena can be used; begins first if that is necessary and possible.
inline bool make_ready() noexcept {
  return is_ready() || (program.may_begin.load(std::memory_order_relaxed) && begin_at_door());
}

/// Called in a forked child: it has no far memory of its own, and may begin as its parent did.
void begin_anew() noexcept;

}  // namespace tonari::far
