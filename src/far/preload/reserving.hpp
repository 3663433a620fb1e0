#pragma once

#include "far/preload/program.hpp"

#include <cstddef>

// Address space that the program reserves with PROT_NONE. It is part of the arena (Extents::is_reserved), has no
// contents, and is not counted as in use. The program opens parts of it later, by mprotect or mmap(MAP_FIXED).
//
//   reserved --opened to read and write, at least --min-size at once--> far memory --mapped PROT_NONE anew--> reserved
//      |---opened otherwise: smaller, or to be executed--> ordinary memory, until it is unmapped: is_foreign
//
// For a program that is ready; any thread.
namespace tonari::far {

/// Reserves address space, and returns its address. Returns 0 if there is no room.
Address reserve(std::size_t bytes) noexcept;
/// Reserves exactly this range. Returns false if some of it is in use, or if there is no room.
bool reserve_at(Range range) noexcept;

/// Opens the reserved parts of `range`, to which the caller then gives `protection`, which is not PROT_NONE. Returns 0
/// or an error number.
int open_reserved(Range range, int protection) noexcept;

/// Reserves `part` of an extent in use again; its contents are lost. Returns 0 or an error number.
int close_again(Range part) noexcept;

/// Makes `range`, which is in use and whose contents do not matter, ordinary memory for ever: anonymous, with
/// `protection`. Returns 0 or an error number.
int make_local(Range range, int protection) noexcept;

// Where threads serve their own faults, agents read and drop pages in place. They must not meet an unreadable page.

/// Tells the keeper that they may not do so in `range` any more. Call it before the range becomes unreadable.
void hide(Range range) noexcept;
/// The same for the blocks that `range` shares with other memory, if it is or was reserved: pages of zeros in the
/// reserved part of a block may come with others. A block that is all reserved has no pages.
void hide_ends(Range range) noexcept;

}  // namespace tonari::far
