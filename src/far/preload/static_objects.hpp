#pragma once

#include "far/preload/extents.hpp"

#include <cstddef>
#include <span>

namespace tonari::far {

/// Whole pages of one or more large static variables, without bytes of any other variable.
struct StaticRange : Range {
  bool is_in_file = false;  // its first contents are mapped from the file (.data); otherwise zeros (.bss)
};

/// Finds the static variables of at least `bytes_min` bytes of the program and of the libraries that are loaded, by
/// their symbols. Leaves out the pages that a variable shares with its neighbours, memory that is read-only, and the
/// variables that our handlers of faults and forks, and our helpers need: of libc, the loader, sanitizers, and this
/// library. Returns how many ranges it has written to `into`, by address; if there are more, the largest.
std::size_t find_static_objects(std::size_t bytes_min, std::span<StaticRange> into) noexcept;

}  // namespace tonari::far
