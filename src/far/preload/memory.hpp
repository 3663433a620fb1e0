#pragma once

#include "far/preload/program.hpp"

#include <cstddef>
#include <cstdint>

// Allocates and frees memory of the arena for the hooks. For a program that is ready; any thread.
namespace tonari::far {

/// Allocates `bytes` of address space in the arena, for take() or a reservation. Before the first of
/// them, makes sure that system calls reach the arena. Returns an empty range if there is no room. `marks` are of
/// Extents::Mark.
Range take_addresses(std::size_t bytes, std::size_t alignment, std::uint32_t marks = 0) noexcept;
/// The same for exactly this range. Returns false if some of it is in use, or if there is no room.
bool take_addresses_at(Range range, std::uint32_t marks = 0) noexcept;

/// Allocates `bytes` and returns their address; they read as zeros. Returns 0 if the arena is full or the keeper
/// refuses. `marks` are of Extents::Mark.
Address take(std::size_t bytes, std::size_t alignment, std::uint32_t marks = 0) noexcept;
/// Allocates exactly this range. Returns false if some of it is in use, or if there is no room.
bool take_at(Range range) noexcept;
/// Allocates the parts of `range` that are not in use. Returns false if there is no room.
bool take_the_rest(Range range) noexcept;
/// Makes the extent that ends at `end` longer. Returns false if there is no room.
bool extend(Address end, std::size_t bytes) noexcept;

/// Frees the parts of `range` that are in use. The addresses stay mapped for the next allocation: a program that reads
/// freed memory gets no signal. Static variables only become zeros.
void give_back(Range range) noexcept;

/// Whether pages that the program has locked in memory are discarded, as unmapping does, or stay, which is an error.
enum class LockedPages : std::uint8_t { stay, go };
/// Drops the pages of `range` that are in the program's memory, and asks the keeper `what`, which discards the others.
/// Calls libc's madvise, because UCX and similar libraries watch it to track which pages are mapped. No fork happens
/// meanwhile. Returns 0 or an error number.
int discard(Request::What what, Range range, LockedPages locked) noexcept;

/// Calls visit(extent) for each part of `range` that is in use. Returns true if all of it is in use. The range is in
/// the arena, or in one range of static variables, which is always in use.
template <class Visit>
bool for_each_used(Range range, Visit visit) noexcept {
  if (is_static(range.start)) {
    visit(Extents::Extent{range, 0});
    return true;
  }
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
