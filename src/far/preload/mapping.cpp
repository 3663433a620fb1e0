#include "far/preload/begin.hpp"
#include "far/preload/faults.hpp"
#include "far/preload/memory.hpp"
#include "far/preload/real.hpp"
#include "far/preload/requests.hpp"
#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <sys/mman.h>

#include <cstdarg>
#include <cstring>

// Replaces mmap and its relatives. A range may overlap the arena, or static variables that are far memory, partly: each
// part is then handled on its own. Wrong arguments are left to the kernel to report.
namespace tonari::far {

namespace {

constexpr int usual_protection = PROT_READ | PROT_WRITE;

struct Parts {
  Range before;
  Range inside;  // of the arena, or of static variables that are far: whole pages
  Range after;   // may have further parts
};

// `before` has no far memory. A range with invalid bounds is returned as `before`.
Parts parts_of(const void* start, std::size_t bytes) noexcept {
  const Range range{address_of(start), bytes};
  const Range inside = first_far_part_of({range.start, to_whole_pages(bytes)});
  if (inside.is_empty() || range.start % page_bytes != 0) return {.before = range, .inside = {}, .after = {}};
  const std::size_t low = inside.start - range.start;
  const bool goes_beyond = range.end() > inside.end();
  return {{range.start, low}, inside, {inside.end(), goes_beyond ? range.end() - inside.end() : 0}};
}

// Returns true for private anonymous memory without special flags.
bool is_plain(int flags) noexcept {
  constexpr int harmless = MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK | MAP_FIXED | MAP_FIXED_NOREPLACE;
  return (flags & ~harmless) == (MAP_PRIVATE | MAP_ANONYMOUS);
}

bool is_fixed(int flags) noexcept { return (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0; }

// With MAP_FIXED_NOREPLACE the kernel would always fail, because the arena's addresses are mapped.
bool goes_to_free_place(const void* hint, std::size_t bytes, int protection, int flags) noexcept {
  return (flags & MAP_FIXED_NOREPLACE) != 0 && is_plain(flags) && protection == usual_protection && bytes != 0 &&
         is_in_arena(hint) && address_of(hint) % page_bytes == 0 && is_ready();
}
bool replaces(int flags) noexcept { return (flags & MAP_FIXED) != 0 && (flags & MAP_FIXED_NOREPLACE) == 0; }

// Without MAP_FIXED an address is only a hint. But a program that names a low one may need it, for pointers of 32 bits.
bool is_only_hint(const void* hint) noexcept {
  constexpr Address low_end = Address{1} << 32;
  return hint == nullptr || address_of(hint) >= low_end;
}

bool goes_to_arena(const void* hint, std::size_t bytes, int protection, int flags) noexcept {
  return bytes >= program.bytes_min.load(std::memory_order_relaxed) &&  // see Program
         is_plain(flags) && !is_fixed(flags) && protection == usual_protection && is_only_hint(hint) && make_ready();
}

void* map_in_arena(void* hint, std::size_t bytes) noexcept {
  if (is_in_arena(hint)) {
    const Range wanted{address_of(hint) / page_bytes * page_bytes, to_whole_pages(bytes)};
    if (take_at(wanted)) return pointer_to(wanted.start);
  }
  return pointer_to(take(bytes, page_bytes));
}

// Where threads serve their own faults, agents read and drop pages in place. They do so no more in the blocks of
// `range`.
void hide(Range range) noexcept {
  if (serves_own_faults() && is_ready()) (void)ask(Request::What::hide, range);
}

void hide_if_unreadable(Range range, int protection) noexcept {
  if ((protection & PROT_READ) == 0) hide(range);
}

// Maps something else than paged memory at `range`, which is in use and stays in use for ever.
int map_foreign(Range range, int protection, int flags, int descriptor, off_t offset) noexcept {
  (void)for_each_used(range, [](const Extents::Extent& part) {
    if ((part.marks & Extents::is_foreign) != 0) return;
    unlock_and_drop(part);
    (void)ask(Request::What::stop_using, part);  // on failure the keeper counts too much memory in use
  });
  if (!is_static(range.start)) {
    const Guard guard(program.lock);
    if (!program.extents.split(range.start) || !program.extents.split(range.end())) return ENOMEM;
    program.extents.mark(range, Extents::is_foreign);
  }
  hide(range);
  void* const start = real().mmap(pointer_to(range.start), range.bytes, protection, flags, descriptor, offset);
  return start == MAP_FAILED ? errno : 0;
}

// MAP_FIXED: `range` of the arena begins anew, with zeros.
int map_over(Range range, int protection, int flags, int descriptor, off_t offset) noexcept {
  std::uint32_t marks = 0;
  if (!is_static(range.start)) {
    if (!take_the_rest(range)) return ENOMEM;
    (void)for_each_used(range, [&](const Extents::Extent& part) { marks |= part.marks; });
  }
  if (!is_plain(flags) || (marks & Extents::is_foreign) != 0) {
    return map_foreign(range, protection, flags, descriptor, offset);
  }
  unlock_and_drop(range);
  if (const int error = ask(Request::What::discard, range)) return error;
  const bool was_protected = is_static(range.start) || (marks & Extents::was_protected) != 0;  // or may have been
  if (protection == usual_protection && !was_protected) return 0;
  if (!is_static(range.start)) {
    const Guard guard(program.lock);
    program.extents.mark(range, Extents::was_protected);
  }
  hide_if_unreadable(range, protection);
  return error_of(system_call(SYS_mprotect, range.start, range.bytes, protection));
}

void* map(void* hint, std::size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept;

void* map_fixed(const Parts& parts, int protection, int flags, int descriptor, off_t offset) noexcept {
  const auto map_outside = [&](Range range) {
    if (range.is_empty()) return true;
    const auto skipped = static_cast<off_t>(range.start - parts.before.start);
    return map(pointer_to(range.start), range.bytes, protection, flags, descriptor, offset + skipped) != MAP_FAILED;
  };
  if (!map_outside(parts.before) || !map_outside(parts.after)) return MAP_FAILED;
  const auto skipped = static_cast<off_t>(parts.before.bytes);
  const int error = map_over(parts.inside, protection, flags, descriptor, offset + skipped);
  return error != 0 ? failed(error, MAP_FAILED) : pointer_to(parts.before.start);
}

void* map(void* hint, std::size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept {
  if (goes_to_arena(hint, bytes, protection, flags)) {
    if (void* const start = map_in_arena(hint, bytes)) return start;
  }
  if (goes_to_free_place(hint, bytes, protection, flags)) {
    const Range wanted{address_of(hint), to_whole_pages(bytes)};
    if (wanted == wanted.cut_to(arena()) && take_at(wanted)) return hint;
  }
  if (replaces(flags)) {
    const Parts parts = parts_of(hint, bytes);
    if (!parts.inside.is_empty() && is_ready()) return map_fixed(parts, protection, flags, descriptor, offset);
  }
  return real().mmap(hint, bytes, protection, flags, descriptor, offset);
}

int unmap(void* start, std::size_t bytes) noexcept {
  const Parts parts = parts_of(start, bytes);
  if (parts.inside.is_empty()) return is_of_parent(start) ? 0 : real().munmap(start, bytes);
  if (is_ready()) give_back(parts.inside);
  for (const Range& range : {parts.before, parts.after}) {
    if (!range.is_empty() && unmap(pointer_to(range.start), range.bytes) != 0) return -1;
  }
  return 0;
}

// Memory that mremap moves stays in the arena, if there is room.
void* move(const Extents::Extent& from, std::size_t wanted) noexcept {
  void* to = pointer_to(take(wanted, page_bytes));
  if (to == nullptr) to = real().mmap(nullptr, wanted, usual_protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED) return to;
  std::memcpy(to, pointer_to(from.start), from.bytes);
  give_back(from);
  return to;
}

void* remap(const Parts& parts, std::size_t bytes, std::size_t wanted, int flags) noexcept {
  if (wanted == 0 || (flags & ~MREMAP_MAYMOVE) != 0) return failed(EINVAL, MAP_FAILED);
  const Range before = parts.inside;
  if (is_static(before.start)) return failed(EINVAL, MAP_FAILED);
  Extents::Extent whole;
  if (is_ready()) {
    const Guard guard(program.lock);
    whole = program.extents.find(before.start);
  }
  if (before.bytes != to_whole_pages(bytes) || before.end() > whole.end()) return failed(EFAULT, MAP_FAILED);
  if ((whole.marks & Extents::is_foreign) != 0) return failed(EINVAL, MAP_FAILED);

  void* const start = pointer_to(before.start);
  if (wanted > PTRDIFF_MAX) return failed(ENOMEM, MAP_FAILED);
  const std::size_t after = to_whole_pages(wanted);
  if (after <= before.bytes) {
    give_back({before.start + after, before.bytes - after});
    return start;
  }
  if (before.end() == whole.end() && extend(before.end(), after - before.bytes)) return start;
  // A protected page may be unreadable, and then it cannot be copied.
  if ((flags & MREMAP_MAYMOVE) == 0 || (whole.marks & Extents::was_protected) != 0) return failed(ENOMEM, MAP_FAILED);
  return move({before, 0}, wanted);
}

// Returns 0 or an error number, as the kernel would for such memory. A hint never fails.
int advise(Range range, int advice) noexcept {
  const auto each = [range](Request::What what, bool is_needed) {
    int error = 0;
    const bool is_whole = for_each_used(range, [&](const Extents::Extent& part) {
      if ((part.marks & Extents::is_foreign) != 0) return;
      const int locked = what == Request::What::discard ? drop(part) : 0;
      const int answer = locked != 0 ? locked : ask(what, part);
      if (is_needed && answer != 0) error = answer;
    });
    return error == 0 && !is_whole ? ENOMEM : error;
  };
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE: return each(Request::What::discard, true);
    case MADV_WILLNEED: return each(Request::What::will_need, false);
    case MADV_COLD:
    case MADV_PAGEOUT: return each(Request::What::done_with, false);
    case MADV_SEQUENTIAL: return each(Request::What::sequential, false);
    case MADV_RANDOM: return each(Request::What::random, false);
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
      if (touch(Bytes{pointer_to(range.start), range.bytes})) return 0;  // the pages that the kernel could not touch
      return error_of(system_call(SYS_madvise, range.start, range.bytes, advice));
    // These are already so, or are promises that nothing depends on. The kernel would split the arena's mapping for
    // them.
    case MADV_NORMAL:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_KEEPONFORK: return 0;
    // MADV_REMOVE is for shared memory; MADV_WIPEONFORK would have no effect: children do not inherit the arena
    default: return EINVAL;
  }
}

// outside(start, bytes) gives the same advice for the other parts.
template <class Outside>
int advise_parts(const Parts& parts, int advice, Outside outside) noexcept {
  int error = is_ready() ? advise(parts.inside, advice) : ENOMEM;  // a forked child has nothing mapped there
  for (const Range& range : {parts.before, parts.after}) {
    if (range.is_empty()) continue;
    const int answer = outside(pointer_to(range.start), range.bytes);
    if (error == 0) error = answer;
  }
  return error;
}

}  // namespace

}  // namespace tonari::far

using namespace tonari::far;

TONARI_NEXT(mlock)
TONARI_NEXT(mlock2)
TONARI_NEXT(mlockall)

namespace {

// Returns true if the range is in use in the arena, and no part of it may be unreadable.
bool may_be_touched(Range range) noexcept {
  if (!is_ready() || range.cut_to(arena()) != range) return false;
  bool is_usual = true;
  const bool is_whole = for_each_used(range, [&](const Extents::Extent& part) {
    is_usual = is_usual && (part.marks & (Extents::was_protected | Extents::is_foreign)) == 0;
  });
  return is_whole && is_usual;
}

// The kernel cannot bring absent pages where it does not report its own faults. So the range is locked first, which
// keeps pages that come, and then touched. Where threads serve their own faults, that must do: the kernel would also
// fail at a page that is just protected.
int lock_in_memory(const void* start, std::size_t bytes) noexcept {
  const Address first = address_of(start) / page_bytes * page_bytes;
  const Range range{first, to_whole_pages(address_of(start) - first + bytes)};
  if (!is_unreached(start, bytes) || !may_be_touched(range)) return next::mlock(start, bytes);
  if (next::mlock2(start, bytes, MLOCK_ONFAULT) != 0) return -1;
  (void)touch(Bytes{start, bytes});
  return serves_own_faults() ? 0 : next::mlock(start, bytes);
}

}  // namespace

TONARI_EXPORTED int mlock(const void* start, std::size_t bytes) noexcept { return lock_in_memory(start, bytes); }

TONARI_EXPORTED int mlock2(const void* start, std::size_t bytes, unsigned flags) noexcept {
  return flags == 0 ? lock_in_memory(start, bytes) : next::mlock2(start, bytes, flags);
}

// Locking far memory would fetch all of its pages, and none could leave again. So it is not locked; other memory is
// locked where it is present, and later pages as they are touched.
TONARI_EXPORTED int mlockall(int flags) noexcept {
  if ((flags & MCL_CURRENT) == 0 || !is_ready()) return next::mlockall(flags);
  if (next::mlockall(flags | MCL_ONFAULT) != 0) return -1;
  const auto unlock = [](Range range) { (void)system_call(SYS_munlock, range.start, range.bytes); };
  unlock(arena());
  for (const Range& range : statics()) unlock(range);
  for (const Range& range : program.beside) unlock(range);
  return 0;
}

TONARI_EXPORTED void* mmap(void* start, std::size_t bytes, int protection, int flags, int descriptor,
                           off_t offset) noexcept {
  return map(start, bytes, protection, flags, descriptor, offset);
}

TONARI_EXPORTED void* mmap64(void* start, std::size_t bytes, int protection, int flags, int descriptor,
                             off64_t offset) noexcept {
  return map(start, bytes, protection, flags, descriptor, offset);
}

TONARI_EXPORTED int munmap(void* start, std::size_t bytes) noexcept { return unmap(start, bytes); }

TONARI_EXPORTED void* mremap(void* start, std::size_t bytes, std::size_t wanted, int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  const Parts parts = parts_of(start, bytes);
  if (!parts.inside.is_empty()) return remap(parts, bytes, wanted, flags);
  if (is_of_parent(start)) return failed(EFAULT, MAP_FAILED);
  if (to != nullptr && !parts_of(to, wanted).inside.is_empty()) return failed(EINVAL, MAP_FAILED);
  return real().mremap(start, bytes, wanted, flags, to);
}

TONARI_EXPORTED int madvise(void* start, std::size_t bytes, int advice) noexcept {
  const Parts parts = parts_of(start, bytes);
  if (parts.inside.is_empty()) return real().madvise(start, bytes, advice);
  const int error = advise_parts(parts, advice, [advice](void* part, std::size_t part_bytes) {
    return ::madvise(part, part_bytes, advice) == 0 ? 0 : errno;
  });
  return error == 0 ? 0 : failed(error, -1);
}

TONARI_EXPORTED int posix_madvise(void* start, std::size_t bytes, int advice) noexcept {
  const Parts parts = parts_of(start, bytes);
  if (parts.inside.is_empty() || advice == POSIX_MADV_DONTNEED) return real().posix_madvise(start, bytes, advice);
  static_assert(POSIX_MADV_WILLNEED == MADV_WILLNEED && POSIX_MADV_SEQUENTIAL == MADV_SEQUENTIAL &&
                POSIX_MADV_RANDOM == MADV_RANDOM && POSIX_MADV_NORMAL == MADV_NORMAL);
  return advise_parts(parts, advice, [advice](void* part, std::size_t part_bytes) {
    return ::posix_madvise(part, part_bytes, advice);
  });
}

TONARI_EXPORTED int mprotect(void* start, std::size_t bytes, int protection) noexcept {
  const Parts parts = parts_of(start, bytes);
  if (is_of_parent(start)) return failed(ENOMEM, -1);  // a forked child would get zeros there
  for (Parts each = parts; !each.inside.is_empty(); each = parts_of(pointer_to(each.after.start), each.after.bytes)) {
    hide_if_unreadable(each.inside, protection);
  }
  const Range inside = parts.inside.cut_to(arena());
  if (!inside.is_empty() && protection != usual_protection) {
    const Guard guard(program.lock);
    program.extents.mark(inside, Extents::was_protected);
  }
  return real().mprotect(start, bytes, protection);
}
