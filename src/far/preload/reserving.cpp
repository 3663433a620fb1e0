#include "far/preload/reserving.hpp"

#include "far/preload/faults.hpp"
#include "far/preload/memory.hpp"
#include "far/preload/requests.hpp"
#include "preload/unreached.hpp"

#include <sys/mman.h>

namespace tonari::far {

namespace {

constexpr int usual_protection = PROT_READ | PROT_WRITE;
constexpr std::uint32_t reserved_marks = Extents::is_reserved | Extents::was_protected;

void hide_blocks_at_ends(Range range) noexcept {
  if (range.start % block_bytes != 0) (void)ask(Request::What::hide, {range.start, page_bytes});
  if (range.end() % block_bytes != 0) (void)ask(Request::What::hide, {range.end() - page_bytes, page_bytes});
}

// Pages of zeros may have come with a neighbour's pages since the range was freed. Further ones can come only in the
// blocks at the ends.
bool make_unreadable(Range range) noexcept {
  preload::unreached.add_protected(range.start, range.bytes);
  hide_ends(range);
  (void)ask(Request::What::discard, range);
  if (!is_error(system_call(SYS_mprotect, range.start, range.bytes, PROT_NONE))) return true;
  const Guard guard(program.lock);
  (void)program.extents.free(range);
  return false;
}

// Both with program.lock: a thread that opens the same range at the same time waits, and then finds it open.

int make_local_locked(Range range, int protection) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  const bool is_in_table = !is_static(range.start);
  if (is_in_table && !program.extents.separate(range)) return ENOMEM;
  const long mapped = system_call(SYS_mmap, range.start, range.bytes, protection, flags, -1, 0);
  if (is_error(mapped)) return error_of(mapped);
  if (is_in_table) {
    program.extents.unmark(range, reserved_marks);
    program.extents.mark(range, Extents::is_foreign);
  }
  // After the mapping, where no page can come any more; and before the program writes to it: the pager then moves none
  // of its pages, and drops no whole block in which some of them are.
  (void)ask(Request::What::discard, range);
  hide_blocks_at_ends(range);
  return 0;
}

int make_far_locked(Range part) noexcept {
  if (!program.extents.separate(part)) return ENOMEM;
  hide_ends(part);
  program.extents.unmark(part, reserved_marks);
  (void)ask(Request::What::use, part);
  return 0;
}

}  // namespace

void hide(Range range) noexcept {
  if (serves_own_faults() && is_ready()) (void)ask(Request::What::hide, range);
}

void hide_ends(Range range) noexcept {
  if (serves_own_faults()) hide_blocks_at_ends(range);
}

Address reserve(std::size_t bytes) noexcept {
  const Range range = take_addresses(bytes, page_bytes, reserved_marks);
  return !range.is_empty() && make_unreadable(range) ? range.start : 0;
}

bool reserve_at(Range range) noexcept { return take_addresses_at(range, reserved_marks) && make_unreadable(range); }

int open_reserved(Range range, int protection) noexcept {
  if (is_static(range.start)) return 0;
  const Guard guard(program.lock);
  int error = 0;
  program.extents.for_each_used(range, [&](const Extents::Extent& part) {
    if ((part.marks & Extents::is_reserved) == 0 || error != 0) return;
    const bool is_large = part.bytes >= program.bytes_min.load(std::memory_order_relaxed);
    error = is_large && protection == usual_protection ? make_far_locked(part) : make_local_locked(part, PROT_NONE);
  });
  return error;
}

int close_again(Range part) noexcept {
  {
    const Guard guard(program.lock);
    if (!program.extents.separate(part)) return ENOMEM;
  }
  if (const int error = discard(Request::What::stop_using, part, LockedPages::go)) return error;
  hide(part);
  preload::unreached.add_protected(part.start, part.bytes);
  const Guard guard(program.lock);
  const long done = system_call(SYS_mprotect, part.start, part.bytes, PROT_NONE);
  if (is_error(done)) return error_of(done);
  program.extents.mark(part, reserved_marks);
  return 0;
}

int make_local(Range range, int protection) noexcept {
  const Guard guard(program.lock);
  return make_local_locked(range, protection);
}

}  // namespace tonari::far
