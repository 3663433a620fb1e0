#include "far/preload/inherited.hpp"

#include "far/preload/real.hpp"
#include "preload/unreached.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace tonari::far {

namespace {

constexpr std::size_t replaced_max = 1 << 16;  // the kernel has no more mappings for a process by default

std::span<Inherited> inherited() noexcept { return std::span(program.inherited).first(program.inherited_count); }

// Returns nullptr if there is none.
Inherited* inherited_at(Address at) noexcept {
  for (Inherited& each : inherited()) {
    if (at - each.range.start < each.range.bytes) return &each;
  }
  return nullptr;
}

// Gives `replaced` a table, when it first needs one.
bool has_table(Inherited& of) noexcept {
  if (of.replaced.entries_left() != 0) return true;
  constexpr std::size_t bytes = replaced_max * sizeof(Extents::Entry);
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (of.has_table) return false;  // it is full
  const long table = system_call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (is_error(table)) return false;
  of.replaced =
      Extents(of.range, {static_cast<Extents::Entry*>(pointer_to(static_cast<Address>(table))), replaced_max});
  of.has_table = true;
  return true;
}

bool inherit(Range range, const Extents& allocated) noexcept {
  if (program.inherited_count == program.inherited.size()) return false;
  Inherited& heirloom = program.inherited[program.inherited_count++];
  heirloom = {.range = range, .allocated = allocated, .replaced = {}};
  // Other mappings there are the child's already.
  bool done = true;
  allocated.for_each_used(range, [&](const Extents::Extent& extent) {
    if (!done || (extent.marks & Extents::is_foreign) == 0) return;
    done = has_table(heirloom);
    if (done) record_replaced(extent);
  });
  return done;
}

// Returns the first inherited part of `range`; empty if there is none.
Range first_part_of(Range range) noexcept {
  const Guard guard(program.lock);
  Range first;
  (void)for_each_inherited_part(range, [&](Inherited&, Range part) {
    first = part;
    return false;
  });
  return first;
}

// The same without address space that was reserved at the fork.
Range first_with_contents(Range range) noexcept {
  const Guard guard(program.lock);
  Range first;
  (void)for_each_inherited_part(range, [&](Inherited& of, Range part) {
    of.allocated.for_each_without(part, Extents::is_reserved, [&](Range each) {
      if (first.is_empty()) first = each;
    });
    return first.is_empty();
  });
  return first;
}

}  // namespace

bool inherit_all() noexcept {
  const std::size_t before = program.inherited_count;
  bool done = arena().is_empty() || inherit(arena(), program.extents);
  for (const Range& each : statics()) done = done && inherit(each, {});
  if (!done) program.inherited_count = before;
  return done;
}

Extents::Extent inherited_allocation_at(const void* start) noexcept {
  if (program.inherited_count == 0 || address_of(start) % page_bytes != 0) [[likely]]
    return {};
  const Inherited* const of = inherited_at(address_of(start));
  if (of == nullptr) return {};
  const Guard guard(program.lock);
  const Extents::Extent extent = of->allocated.find(address_of(start));
  const bool is_one = extent.start == address_of(start) && (extent.marks & Extents::is_allocated) != 0;
  return is_one ? extent : Extents::Extent{};
}

void free_inherited(const Extents::Extent& allocation) noexcept {
  {
    const Guard guard(program.lock);
    (void)inherited_at(allocation.start)->allocated.free(allocation);
  }
  (void)replace_inherited(allocation,
                          [&] { return real().munmap(pointer_to(allocation.start), allocation.bytes) == 0; });
}

bool meets_inherited(Range range) noexcept {
  if (program.inherited_count == 0) [[likely]]
    return false;
  return !first_part_of(range).is_empty();
}

bool bring_inherited(Range range) noexcept {
  for (Range part = first_part_of(range); !part.is_empty(); part = first_part_of(range)) {
    if (is_error(system_call(SYS_madvise, part.start, part.bytes, MADV_POPULATE_READ))) {
      // The kernel reports no faults of its own.
      const Bytes bytes{pointer_to(part.start), part.bytes};
      if (!is_accessible(bytes.start, bytes.bytes, Access::read) || !touch(bytes)) return false;
    }
    range = {part.end(), range.end() - part.end()};
  }
  return true;
}

int discard_inherited(Range range) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  for (Range part = first_with_contents(range); !part.is_empty(); part = first_with_contents(range)) {
    const bool done = replace_inherited(part, [part] {
      void* const start = pointer_to(part.start);
      return real().mmap(start, part.bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED;
    });
    if (!done) return errno;
  }
  return 0;
}

void protect_inherited(Range range) noexcept {
  if (program.inherited_count == 0) [[likely]]
    return;
  const Guard guard(program.lock);
  (void)for_each_inherited_part(range, [](Inherited& of, Range part) {
    of.allocated.mark(part, Extents::was_protected);
    return true;
  });
}

bool is_inherited_protected(Range range) noexcept {
  const Guard guard(program.lock);
  bool met = false;
  (void)for_each_inherited_part(range, [&](Inherited& of, Range part) {
    of.allocated.for_each_used(
        part, [&met](const Extents::Extent& extent) { met = met || (extent.marks & Extents::was_protected) != 0; });
    return true;
  });
  return met;
}

bool can_be_replaced(Range range) noexcept {
  const Inherited* last = nullptr;
  std::size_t parts = 0;  // of `last`
  return for_each_inherited_part(range, [&](Inherited& of, Range) {
    parts = &of == last ? parts + 1 : 1;
    last = &of;
    return has_table(of) && of.replaced.entries_left() >= parts;
  });
}

// Extends the replaced part before it, if there is one.
void record_replaced(Range range) noexcept {
  (void)for_each_inherited_part(range, [](Inherited& of, Range part) {
    if (!of.replaced.grow(part.start, part.bytes)) (void)of.replaced.allocate_at(part);
    return true;
  });
}

}  // namespace tonari::far
