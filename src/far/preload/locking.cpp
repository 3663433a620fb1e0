#include "far/preload/faults.hpp"
#include "far/preload/inherited.hpp"
#include "far/preload/memory.hpp"
#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <sys/mman.h>

// Replaces mlock and its relatives.
TONARI_NEXT(mlock)
TONARI_NEXT(mlock2)
TONARI_NEXT(mlockall)

namespace tonari::far {

namespace {

// Returns true if the range is in use in the arena, and all of it is paged.
bool is_paged(Range range) noexcept {
  if (!is_ready() || range.cut_to(arena()) != range) return false;
  bool is_usual = true;
  const bool is_whole = for_each_used(
      range, [&](const Extents::Extent& part) { is_usual = is_usual && (part.marks & Extents::not_paged) == 0; });
  return is_whole && is_usual;
}

bool bring_all(Range range) noexcept {
  for (Address at = range.start; at < range.end(); at += page_bytes) {
    if (bring(at) == Bringing::lost) return false;
  }
  return true;
}

// The kernel cannot bring absent pages where it does not report its own faults. So the range is locked first, which
// keeps pages that come, and then they are brought. Where threads serve their own faults, that must do: the kernel
// would also fail at a page that the pager has just protected. It fails at a page that the program has closed.
int lock_in_memory(const void* start, std::size_t bytes) noexcept {
  const Address first = address_of(start) / page_bytes * page_bytes;
  const Range range{first, to_whole_pages(address_of(start) - first + bytes)};
  if (meets_inherited(range) && !bring_inherited(range)) return failed(ENOMEM, -1);
  const bool is_far = is_paged(range);
  const bool brings = serves_own_faults() && is_ready() && (is_far || is_static(range.start));
  if (!is_unreached(start, bytes) || !(brings || is_far)) return next::mlock(start, bytes);
  if (next::mlock2(start, bytes, MLOCK_ONFAULT) != 0) return -1;
  if (brings) return is_accessible(start, bytes, Access::read) && bring_all(range) ? 0 : failed(ENOMEM, -1);
  (void)touch(Bytes{start, bytes});
  return next::mlock(start, bytes);
}

}  // namespace

}  // namespace tonari::far

using namespace tonari::far;

TONARI_EXPORTED int mlock(const void* start, std::size_t bytes) noexcept { return lock_in_memory(start, bytes); }

TONARI_EXPORTED int mlock2(const void* start, std::size_t bytes, unsigned flags) noexcept {
  return flags == 0 ? lock_in_memory(start, bytes) : next::mlock2(start, bytes, flags);
}

// Locking far memory would fetch all of its pages, and none could leave again. So it is not locked; other memory is
// locked where it is present, and later pages as they are touched.
TONARI_EXPORTED int mlockall(int flags) noexcept {
  if ((flags & MCL_CURRENT) == 0 || (!is_ready() && program.inherited_count == 0)) return next::mlockall(flags);
  if (next::mlockall(flags | MCL_ONFAULT) != 0) return -1;
  const auto unlock = [](Range range) { (void)system_call(SYS_munlock, range.start, range.bytes); };
  for (const Range& range : statics()) unlock(range);
  for (const Range& range : program.beside) unlock(range);
  const Guard guard(program.lock);
  program.extents.for_each_without(arena(), Extents::is_foreign, unlock);
  (void)for_each_inherited_part(everywhere, [unlock](Inherited&, Range part) {
    unlock(part);
    return true;
  });
  return 0;
}
