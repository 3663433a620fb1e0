#pragma once

#include "far/preload/extents.hpp"

#include <limits.h>
#include <link.h>

#include <array>
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

/// The program, or a library that is loaded.
struct LoadedFile {
  Address headers = 0;                // of its program headers, by which it is known
  Address moved_by = 0;               // from the addresses in the file
  std::array<char, PATH_MAX> path{};  // empty: the program
};

/// Writes the addresses of the program headers of files that may have `bytes_min` bytes of static variables to `into`,
/// in the order in which the files were loaded. Leaves out the files whose variables our handlers of faults and forks,
/// and our helpers need: libc, the loader, sanitizers, and this library. Returns how many it has written.
std::size_t find_large_files(std::size_t bytes_min, std::span<Address> into) noexcept;

/// Finds the static variables of at least `bytes_min` bytes of a loaded file, by its symbols.
/// Leaves out the pages that a variable shares with its neighbours, and memory that is read-only. Returns how many
/// ranges it has written to `into`, by address; if there are more, the largest.
///
/// A file without symbols does not tell its variables apart. Its .data and .bss count as one large variable each, from
/// unnamed_factor * bytes_min on, without the pages of small variables that it exports. But they are left out if the
/// file imports a function by which small variables may come to harm in far memory: see the source.
std::size_t find_static_objects(const dl_phdr_info& object, StaticSearch wanted, std::span<StaticRange> into) noexcept;
/// The same for the file with these program headers. Returns 0 if it is not loaded any more.
std::size_t find_static_objects(Address headers, StaticSearch wanted, LoadedFile& file,
                                std::span<StaticRange> into) noexcept;

}  // namespace tonari::far
