#pragma once

#include "far/preload/program.hpp"
#include "preload/next.hpp"

#include <cstddef>
#include <span>

// Far memory that a forked child has inherited. It is ordinary memory of the child, except that the keeper brings the
// pages that were absent at the fork; pages that have come stay. The kernel unmaps it, moves it and maps over it as
// usual. Recorded is only where that has happened: a child of the child does not inherit these parts.
//
// In a process that has inherited nothing, each call is one comparison.
namespace tonari::far {

/// Called in a forked child, while it has one thread: its parent's far memory is inherited from now on. Returns false
/// if there are too many generations, or no memory for a table.
bool inherit_all() noexcept;

/// Calls visit(of, part) for each part of `range` that is still inherited. Stops, and returns false, when visit()
/// returns false. Call it with program.lock, or while the process has one thread.
template <class Visit>
bool for_each_inherited_part(Range range, Visit visit) noexcept {
  for (Inherited& each : std::span(program.inherited).first(program.inherited_count)) {
    for (Range rest = range.cut_to(each.range); !rest.is_empty();) {
      const Range part = each.replaced.first_free(rest);
      if (part.is_empty()) break;
      if (!visit(each, part)) return false;
      rest = {part.end(), rest.end() - part.end()};
    }
  }
  return true;
}
inline constexpr Range everywhere{0, ~std::size_t{0}};

/// Returns the inherited allocation that begins at `start`; empty if there is none.
Extents::Extent inherited_allocation_at(const void* start) noexcept;
void free_inherited(const Extents::Extent& allocation) noexcept;

/// Returns true if some of `range` is inherited.
bool meets_inherited(Range range) noexcept;
/// Brings all inherited pages of `range`. Returns false if some cannot be read.
bool bring_inherited(Range range) noexcept;
/// Makes the inherited parts of `range` zeros, as madvise(MADV_DONTNEED) does. A part that the program has protected
/// becomes readable and writable. Address space that was reserved at the fork is left to the kernel, after whose
/// discarding the keeper brings zeros again. Returns 0 or an error number.
int discard_inherited(Range range) noexcept;
/// Marks the inherited parts of `range` as protected by the program.
void protect_inherited(Range range) noexcept;
/// Returns true if some are.
bool is_inherited_protected(Range range) noexcept;

// For replace_inherited(), with program.lock.

/// Returns true if the tables have room to record that `range` is replaced.
bool can_be_replaced(Range range) noexcept;
/// Only after can_be_replaced().
void record_replaced(Range range) noexcept;

/// Calls act(), which unmaps `range`, or maps something else there; and so with `other`, if it is not empty. If act()
/// returns true, both are not inherited any more. Returns false if act() does, or if there is no memory to record it.
template <class Act>
bool replace_inherited(Range range, Act act, Range other = {}) noexcept {
  if (!meets_inherited(range) && !meets_inherited(other)) return act();
  const Guard guard(program.lock);
  if (!can_be_replaced(range) || !can_be_replaced(other)) return failed(ENOMEM, false);
  if (!act()) return false;
  record_replaced(range);
  record_replaced(other);
  return true;
}

}  // namespace tonari::far
