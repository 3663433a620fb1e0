#pragma once

#include "far/preload/extents.hpp"

#include <cstddef>
#include <span>

namespace tonari::far {

/// Whole pages of one or more large static variables, without bytes of any other variable; or of all static variables
/// of a file without symbols.
struct StaticRange : Range {
  bool is_in_file = false;  // its first contents are mapped from the file (.data); otherwise zeros (.bss)
};

struct StaticSearch {
  std::size_t bytes_min;    // of a variable
  bool reaches_everything;  // every system call reaches far memory
};

/// Finds the static variables of at least `bytes_min` bytes of the program and of the libraries that are loaded, by
/// their symbols. Leaves out the pages that a variable shares with its neighbours, memory that is read-only, and the
/// variables that our handlers of faults and forks, and our helpers need: of libc, the loader, sanitizers, and this
/// library. Returns how many ranges it has written to `into`, by address; if there are more, the largest.
///
/// A file without symbols does not tell its variables apart. Its .data and .bss count as one large variable each, from
/// unnamed_factor * bytes_min on, without the pages of small variables that it exports. But they are left out if the
/// file imports a function by which small variables may come to harm in far memory: see the source.
std::size_t find_static_objects(StaticSearch wanted, std::span<StaticRange> into) noexcept;

}  // namespace tonari::far
