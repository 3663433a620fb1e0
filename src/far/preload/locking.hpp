#pragma once

#include <cstddef>

namespace tonari::far {

/// Does what mlock() does for memory that may be far: its pages come, and stay. Returns 0, or -1 and sets errno.
int lock_in_memory(const void* start, std::size_t bytes) noexcept;

}  // namespace tonari::far
