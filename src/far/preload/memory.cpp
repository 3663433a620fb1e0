#include "far/preload/memory.hpp"

#include "far/preload/real.hpp"
#include "far/preload/requests.hpp"
#include "far/preload/reserving.hpp"
#include "far/preload/trapped_calls.hpp"

namespace tonari::far {

namespace {

void forget(Range range) noexcept {
  const Guard guard(program.lock);
  // Fails if the table has no entry left for a split. The range, which reads as zeros by now, then stays in use.
  (void)program.extents.free(range);
}

// Counts `range` as allocated. It needs no discarding, because nobody has touched it yet. Returns false if the keeper
// refuses.
bool is_lent(Range range) noexcept {
  if (ask(Request::What::use, range) == 0) return true;
  forget(range);
  return false;
}

// Returns 0, or an error number if the pages are locked in memory.
int drop(Range range) noexcept {
  const int before = errno;
  const int error = real().madvise(pointer_to(range.start), range.bytes, MADV_DONTNEED) == 0 ? 0 : errno;
  errno = before;
  return error;
}

void give_back_part(const Extents::Extent& part) noexcept {
  constexpr int usual = PROT_READ | PROT_WRITE;
  if ((part.marks & Extents::is_foreign) != 0) {
    // Leaves no hole, in which the kernel might place memory that is not the arena's.
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    (void)system_call(SYS_mmap, part.start, part.bytes, PROT_NONE, flags, -1, 0);
    return;
  }
  // Discarded before another thread can allocate it. A range that cannot be discarded is not allocated again.
  const bool is_used = (part.marks & Extents::is_reserved) == 0;
  const auto what = is_used ? Request::What::stop_using : Request::What::discard;
  if (!is_used) hide_ends(part);  // the rest of the reservation may be in the same blocks
  if (discard(what, part, LockedPages::go) != 0 || is_static(part.start)) return;
  if ((part.marks & Extents::was_protected) != 0 &&
      is_error(system_call(SYS_mprotect, part.start, part.bytes, usual))) {
    return;
  }
  forget(part);
}

// Where threads serve their own faults, system calls must reach the arena before the program has memory there.
bool can_be_given() noexcept { return !program.traps || trap_calls(); }

}  // namespace

Range take_addresses(std::size_t bytes, std::size_t alignment, std::uint32_t marks) noexcept {
  if (!can_be_given()) return {};
  const Guard guard(program.lock);
  const Address start = program.extents.allocate(bytes, alignment, marks);
  return start != 0 ? Range{start, to_whole_pages(bytes)} : Range{};
}

bool take_addresses_at(Range range, std::uint32_t marks) noexcept {
  if (!can_be_given()) return false;
  const Guard guard(program.lock);
  return program.extents.allocate_at(range, marks);
}

Address take(std::size_t bytes, std::size_t alignment, std::uint32_t marks) noexcept {
  const Range range = take_addresses(bytes, alignment, marks);
  return !range.is_empty() && is_lent(range) ? range.start : 0;
}

bool take_at(Range range) noexcept { return take_addresses_at(range) && is_lent(range); }

bool take_the_rest(Range range) noexcept {
  for (;;) {
    Range gap;
    {
      const Guard guard(program.lock);
      gap = program.extents.first_free(range);
      if (gap.is_empty()) return true;
      if (!program.extents.allocate_at(gap)) return false;
    }
    if (!is_lent(gap)) return false;
  }
}

bool extend(Address end, std::size_t bytes) noexcept {
  {
    const Guard guard(program.lock);
    if (!program.extents.grow(end, bytes)) return false;
  }
  return is_lent({end, bytes});
}

int discard(Request::What what, Range range, LockedPages locked) noexcept {
  const auto inside = WithoutSignals::but_faults();
  while (!program.discards.try_enter()) pause_shortly();  // a fork takes milliseconds
  int error = drop(range);
  if (error != 0 && locked == LockedPages::go) {
    (void)system_call(SYS_munlock, range.start, range.bytes);
    (void)drop(range);  // fails if something else is mapped there
    error = 0;
  }
  if (error == 0) error = ask(what, range);
  program.discards.leave();
  return error;
}

void give_back(Range range) noexcept { (void)for_each_used(range, give_back_part); }

}  // namespace tonari::far
