#pragma once

#include "far/preload/program.hpp"

#include <cstddef>

// The arena's memory, as the hooks take and give it. All of a program that is ready; any thread.
namespace tonari::far {

/// Answers the address of zeros, or 0: the arena, or who lends the memory, has no room for `bytes`.
/// `marks` are of Extents::Mark.
Address take(std::size_t bytes, std::size_t alignment, std::uint32_t marks = 0) noexcept;
/// False: some of it is in use, or there is no room.
bool take_at(Range range) noexcept;
/// What is not in use of it. False: there is no room.
bool take_the_rest(Range range) noexcept;
/// Makes the extent that ends at `end` longer. False: there is no room.
bool extend(Address end, std::size_t bytes) noexcept;

/// Whatever of `range` is in use. The addresses stay mapped, for the next who takes them: reading there afterwards is a
/// mistake of the program that no signal tells.
void give_back(Range range) noexcept;

/// Drops the pages of `range` that are here; those that are not are the keeper's to discard. By libc's own function:
/// who remembers which pages are where, as UCX does, watches it. 0, or an error number: they are locked in memory.
int drop(Range range) noexcept;
/// Locked or not, as unmapping does.
void unlock_and_drop(Range range) noexcept;

/// Calls visit(extent) for each part of `range` that is in use. Answers whether all of it is.
template <class Visit>
bool for_each_used(Range range, Visit visit) noexcept {
  for (bool is_whole = true;;) {
    Extents::Extent part;
    {
      const Guard guard(program.lock);
      part = program.extents.first_used(range);
    }
    if (part.is_empty()) return is_whole && range.is_empty();
    is_whole = is_whole && part.start == range.start;
    visit(part);
    range = {part.end(), range.end() - part.end()};
  }
}

}  // namespace tonari::far
