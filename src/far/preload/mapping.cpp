#include "far/preload/begin.hpp"
#include "far/preload/faults.hpp"
#include "far/preload/inherited.hpp"
#include "far/preload/memory.hpp"
#include "far/preload/real.hpp"
#include "far/preload/requests.hpp"
#include "far/preload/reserving.hpp"
#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <sys/mman.h>

#include <algorithm>
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

// PROT_NONE reserves address space.
bool can_be_far(int protection) noexcept { return protection == usual_protection || protection == PROT_NONE; }

// With MAP_FIXED_NOREPLACE the kernel would always fail, because the arena's addresses are mapped.
bool goes_to_free_place(const void* hint, std::size_t bytes, int protection, int flags) noexcept {
  return (flags & MAP_FIXED_NOREPLACE) != 0 && is_plain(flags) && can_be_far(protection) && bytes != 0 &&
         is_in_arena(hint) && address_of(hint) % page_bytes == 0 && is_ready();
}
bool replaces(int flags) noexcept { return (flags & MAP_FIXED) != 0 && (flags & MAP_FIXED_NOREPLACE) == 0; }

// Without MAP_FIXED an address is only a hint, but a program may need the one that it names. A low one it may need for
// pointers of 32 bits. Runtimes reserve their heap at a low or a round address, for compressed pointers, or to have
// bits left in the others, or because they know the heap by its addresses (Java, Go); V8 names addresses at random.
bool is_only_hint(const void* hint, int protection) noexcept {
  constexpr Address low_end = Address{1} << 32;
  constexpr Address low_end_of_reservations = Address{1} << 40;
  if (hint == nullptr || is_in_arena(hint)) return true;
  if (protection != PROT_NONE) return address_of(hint) >= low_end;
  return address_of(hint) >= low_end_of_reservations && address_of(hint) % block_bytes != 0;
}

bool goes_to_arena(const void* hint, std::size_t bytes, int protection, int flags) noexcept {
  return bytes >= program.bytes_min.load(std::memory_order_relaxed) &&  // see Program
         is_plain(flags) && !is_fixed(flags) && can_be_far(protection) && is_only_hint(hint, protection) &&
         make_ready();
}

bool map_in_arena_at(Range wanted, int protection) noexcept {
  if (wanted.cut_to(arena()) != wanted) return false;
  return protection == PROT_NONE ? reserve_at(wanted) : take_at(wanted);
}

void* map_in_arena(void* hint, std::size_t bytes, int protection) noexcept {
  const Range wanted{address_of(hint) / page_bytes * page_bytes, to_whole_pages(bytes)};
  if (is_in_arena(hint) && map_in_arena_at(wanted, protection)) return pointer_to(wanted.start);
  return pointer_to(protection == PROT_NONE ? reserve(bytes) : take(bytes, page_bytes));
}

// Called before the program protects memory, or maps something else to its place.
void expect_protection(Range range, int protection) noexcept {
  if ((protection & usual_protection) == usual_protection) return;
  const bool is_far = is_unreached(pointer_to(range.start), range.bytes) || !first_far_part_of(range).is_empty();
  if (is_far) unreached.add_protected(range.start, range.bytes);
}

void hide_if_unreadable(Range range, int protection) noexcept {
  if ((protection & PROT_READ) == 0) hide(range);
}

int map_ordinary(Range range, int protection, int flags, int descriptor, off_t offset) noexcept {
  void* const start = real().mmap(pointer_to(range.start), range.bytes, protection, flags, descriptor, offset);
  return start == MAP_FAILED ? errno : 0;
}

// `range` is in use. Makes it ordinary memory for ever, in whose place something else can be mapped.
int make_foreign(Range range) noexcept {
  (void)for_each_used(range, [](const Extents::Extent& part) {
    if ((part.marks & Extents::not_paged) != 0) return;
    // on failure the keeper counts too much memory in use
    (void)discard(Request::What::stop_using, part, LockedPages::go);
  });
  return make_local(range, usual_protection);
}

int map_foreign(Range range, int protection, int flags, int descriptor, off_t offset) noexcept {
  if (const int error = make_foreign(range)) return error;
  return map_ordinary(range, protection, flags, descriptor, offset);
}

// Far memory in use, or static variables: `part` begins anew, with zeros.
int map_anew(const Extents::Extent& part, int protection) noexcept {
  const bool is_variable = is_static(part.start);
  if (protection == PROT_NONE && !is_variable) return close_again(part);
  if (const int error = discard(Request::What::discard, part, LockedPages::go)) return error;
  const bool was_protected = is_variable || (part.marks & Extents::was_protected) != 0;  // or may have been
  if (protection == usual_protection && !was_protected) return 0;
  if (!is_variable) {
    const Guard guard(program.lock);
    program.extents.mark(part, Extents::was_protected);
  }
  hide_if_unreadable(part, protection);
  return error_of(system_call(SYS_mprotect, part.start, part.bytes, protection));
}

// Gives a reserved part a protection.
int open_part(Range part, int protection) noexcept {
  if (protection == PROT_NONE) return 0;
  if (const int error = open_reserved(part, protection)) return error;
  return error_of(system_call(SYS_mprotect, part.start, part.bytes, protection));
}

// MAP_FIXED: `range` of the arena begins anew. Memory that is to be executed cannot be moved, so it is not far.
int map_over(Range range, int protection, int flags, int descriptor, off_t offset) noexcept {
  if (!is_static(range.start) && !take_the_rest(range)) return ENOMEM;
  if (!is_plain(flags) || (protection & PROT_EXEC) != 0) {
    return map_foreign(range, protection, flags, descriptor, offset);
  }
  int error = 0;
  (void)for_each_used(range, [&](const Extents::Extent& part) {
    if (error != 0) return;
    if ((part.marks & Extents::is_foreign) != 0) {
      error = map_ordinary(part, protection, flags, descriptor, 0);
    } else if ((part.marks & Extents::is_reserved) != 0) {
      error = open_part(part, protection);
    } else {
      error = map_anew(part, protection);
    }
  });
  return error;
}

void* map(void* hint, std::size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept;

// MAP_FIXED, where no far memory of this process is.
void* map_over_inherited(void* start, std::size_t bytes, int protection, int flags, int descriptor,
                         off_t offset) noexcept {
  void* to = MAP_FAILED;
  (void)replace_inherited({address_of(start), to_whole_pages(bytes)}, [&] {
    to = real().mmap(start, bytes, protection, flags, descriptor, offset);
    return to != MAP_FAILED;
  });
  return to;
}

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
    if (void* const start = map_in_arena(hint, bytes, protection)) return start;
  }
  if (goes_to_free_place(hint, bytes, protection, flags)) {
    const Range wanted{address_of(hint), to_whole_pages(bytes)};
    if (map_in_arena_at(wanted, protection)) return hint;
  }
  if (replaces(flags)) {
    expect_protection({address_of(hint), to_whole_pages(bytes)}, protection);
    const Parts parts = parts_of(hint, bytes);
    if (!parts.inside.is_empty() && is_ready()) return map_fixed(parts, protection, flags, descriptor, offset);
    return map_over_inherited(hint, bytes, protection, flags, descriptor, offset);
  }
  return real().mmap(hint, bytes, protection, flags, descriptor, offset);
}

int unmap(void* start, std::size_t bytes) noexcept {
  const Parts parts = parts_of(start, bytes);
  if (parts.inside.is_empty()) {
    if (is_lost(start)) return 0;
    const auto unmap_it = [=] { return real().munmap(start, bytes) == 0; };
    return replace_inherited({address_of(start), to_whole_pages(bytes)}, unmap_it) ? 0 : -1;
  }
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

// Returns memory to which mremap can move, or MAP_FAILED.
void* reserve_elsewhere(std::size_t bytes) noexcept {
  return real().mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// Ordinary memory moves out of the arena. Its place there is not used again.
void* move_foreign(Range from, std::size_t wanted) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* const to = reserve_elsewhere(wanted);
  if (to == MAP_FAILED) return to;
  void* const moved = real().mremap(pointer_to(from.start), from.bytes, wanted, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  if (moved == MAP_FAILED) {
    (void)system_call(SYS_munmap, to, wanted);
    return moved;
  }
  (void)system_call(SYS_mmap, from.start, from.bytes, PROT_NONE, flags, -1, 0);  // leaves no hole
  return moved;
}

// A reservation has no contents.
void* move_reserved(Range from, std::size_t wanted) noexcept {
  void* const to = map(nullptr, wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (to != MAP_FAILED) give_back(from);
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
  const bool is_foreign = (whole.marks & Extents::is_foreign) != 0;  // the kernel looks where it ends
  if (before.bytes != to_whole_pages(bytes) || (!is_foreign && before.end() > whole.end())) {
    return failed(EFAULT, MAP_FAILED);
  }

  void* const start = pointer_to(before.start);
  if (wanted > PTRDIFF_MAX) return failed(ENOMEM, MAP_FAILED);
  const std::size_t after = to_whole_pages(wanted);
  if (after <= before.bytes) {
    give_back({before.start + after, before.bytes - after});
    return start;
  }
  if ((whole.marks & Extents::not_paged) != 0) {
    if ((flags & MREMAP_MAYMOVE) == 0) return failed(ENOMEM, MAP_FAILED);
    return is_foreign ? move_foreign(before, wanted) : move_reserved(before, wanted);
  }
  if (before.end() == whole.end() && extend(before.end(), after - before.bytes)) return start;
  // A protected page may be unreadable, and then it cannot be copied.
  if ((flags & MREMAP_MAYMOVE) == 0 || (whole.marks & Extents::was_protected) != 0) return failed(ENOMEM, MAP_FAILED);
  return move({before, 0}, wanted);
}

// If the kernel moved inherited memory, it would keep the flags of the arena in its new place. Memory that the program
// then maps over a part of it would have other flags, and no later mremap could move both.
void* copy_inherited(Range from, std::size_t wanted) noexcept {
  void* const to = real().mmap(nullptr, wanted, usual_protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED) return to;
  std::memcpy(to, pointer_to(from.start), std::min(from.bytes, wanted));
  const auto unmap_it = [from] { return real().munmap(pointer_to(from.start), from.bytes) == 0; };
  if (replace_inherited(from, unmap_it)) return to;
  (void)system_call(SYS_munmap, to, wanted);
  return MAP_FAILED;
}

// Once all of its pages are there, inherited memory can move, and is ordinary memory in its new place. It cannot grow
// in its old place: the kernel would still ask the keeper for the pages there.
void* move_inherited(Range from, std::size_t wanted, int flags, void* to) noexcept {
  if ((flags & MREMAP_MAYMOVE) == 0) return failed(ENOMEM, MAP_FAILED);
  if ((flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) != 0) return failed(EINVAL, MAP_FAILED);
  if (!bring_inherited(from)) return failed(ENOMEM, MAP_FAILED);
  if ((flags & MREMAP_FIXED) == 0 && !is_inherited_protected(from)) return copy_inherited(from, wanted);
  void* const place = (flags & MREMAP_FIXED) != 0 ? to : reserve_elsewhere(wanted);
  if (place == MAP_FAILED) return place;
  const Range target{address_of(place), to_whole_pages(wanted)};
  void* result = MAP_FAILED;
  const auto remap = [&] {
    (void)system_call(SYS_madvise, from.start, from.bytes, MADV_DOFORK);
    result = real().mremap(pointer_to(from.start), from.bytes, wanted, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    return result != MAP_FAILED;
  };
  (void)replace_inherited(from, remap, target);
  if (result == MAP_FAILED && place != to) (void)system_call(SYS_munmap, place, wanted);
  return result;
}

void* remap_ordinary(void* start, std::size_t bytes, std::size_t wanted, int flags, void* to) noexcept {
  const Range from{address_of(start), to_whole_pages(bytes)};
  void* result = MAP_FAILED;
  const auto remap = [&](Range replaced) {
    (void)replace_inherited(replaced, [&] {
      result = real().mremap(start, bytes, wanted, flags, to);
      return result != MAP_FAILED;
    });
    return result;
  };
  const Range target = to != nullptr ? Range{address_of(to), to_whole_pages(wanted)} : Range{};
  if (!meets_inherited(from)) return remap(target);
  const std::size_t whole = to_whole_pages(wanted);
  if (to != nullptr || whole > from.bytes) return move_inherited(from, wanted, flags, to);
  return remap({from.start + whole, from.bytes - whole});  // only its end goes
}

// Ordinary memory may move to a range of the arena that the program has reserved. Returns false for any other range.
bool makes_way(Range range) noexcept {
  const Range whole{range.start, to_whole_pages(range.bytes)};
  if (!is_ready() || whole.cut_to(arena()) != whole || whole.start % page_bytes != 0) return false;
  bool is_free = true;
  const bool is_in_use = for_each_used(
      whole, [&](const Extents::Extent& part) { is_free = is_free && (part.marks & Extents::not_paged) != 0; });
  return is_free && is_in_use && make_foreign(whole) == 0;
}

// The kernel would split the mapping for advice that does not matter here. Returns false if the advice is the kernel's.
bool is_ignored(int advice) noexcept {
  switch (advice) {
    case MADV_NORMAL:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_KEEPONFORK: return true;
    default: return false;
  }
}

// Parts of the range may be ordinary memory, for which the kernel gets the same advice.
int advise_inherited(Range range, int advice) noexcept {
  constexpr int dontneed_locked = 24;  // Linux 5.18: MADV_DONTNEED_LOCKED
  if (is_ignored(advice)) return 0;
  switch (advice) {
    case MADV_FREE: return 0;  // the pages may keep their old bytes
    case MADV_DONTNEED:
    case dontneed_locked:
      if (const int error = discard_inherited(range)) return error;
      break;
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
      if (!bring_inherited(range)) return EFAULT;
      break;
    case MADV_WILLNEED:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case MADV_SEQUENTIAL:
    case MADV_RANDOM: break;
    default: return EINVAL;
  }
  return real().madvise(pointer_to(range.start), range.bytes, advice) == 0 ? 0 : errno;
}

bool can_populate(Range part, int advice) noexcept {
  return is_accessible(pointer_to(part.start), part.bytes, advice == MADV_POPULATE_READ ? Access::read : Access::write);
}

// Returns 0 or an error number, as the kernel would for such memory.
int advise_part(const Extents::Extent& part, int advice) noexcept {
  void* const start = pointer_to(part.start);
  if ((part.marks & Extents::is_foreign) != 0) return real().madvise(start, part.bytes, advice) == 0 ? 0 : errno;
  if (is_ignored(advice)) return 0;
  const bool is_reserved = (part.marks & Extents::is_reserved) != 0;
  const auto hint = [&](Request::What what) {
    if (!is_reserved) (void)ask(what, part);
    return 0;
  };
  switch (advice) {
    case MADV_DONTNEED:
    case MADV_FREE: return is_reserved ? 0 : discard(Request::What::discard, part, LockedPages::stay);
    case MADV_WILLNEED: return hint(Request::What::will_need);
    case MADV_COLD:
    case MADV_PAGEOUT: return hint(Request::What::done_with);
    case MADV_SEQUENTIAL: return hint(Request::What::sequential);
    case MADV_RANDOM: return hint(Request::What::random);
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
      if (!is_reserved && can_populate(part, advice) && touch(Bytes{start, part.bytes})) return 0;
      return error_of(system_call(SYS_madvise, part.start, part.bytes, advice));
    // MADV_REMOVE is for shared memory. MADV_WIPEONFORK is not supported: a child inherits all far memory.
    default: return EINVAL;
  }
}

int advise(Range range, int advice) noexcept {
  int error = 0;
  const bool is_whole = for_each_used(range, [&](const Extents::Extent& part) {
    const int answer = advise_part(part, advice);
    if (answer != 0) error = answer;
  });
  return error == 0 && !is_whole && !is_ignored(advice) ? ENOMEM : error;
}

// outside(start, bytes) gives the same advice for the other parts.
template <class Outside>
int advise_parts(const Parts& parts, int advice, Outside outside) noexcept {
  int error = is_ready() ? advise(parts.inside, advice) : ENOMEM;  // the child of a raw fork has nothing mapped there
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
  if (is_lost(start)) return failed(EFAULT, MAP_FAILED);
  if (to != nullptr && !parts_of(to, wanted).inside.is_empty() && !makes_way({address_of(to), wanted})) {
    return failed(EINVAL, MAP_FAILED);
  }
  return remap_ordinary(start, bytes, wanted, flags, to);
}

TONARI_EXPORTED int madvise(void* start, std::size_t bytes, int advice) noexcept {
  const Parts parts = parts_of(start, bytes);
  if (parts.inside.is_empty()) {
    const Range range{address_of(start), to_whole_pages(bytes)};
    if (!meets_inherited(range)) return real().madvise(start, bytes, advice);
    const int error = advise_inherited(range, advice);
    return error == 0 ? 0 : failed(error, -1);
  }
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
  if (is_lost(start)) return failed(ENOMEM, -1);  // it would get zeros there
  expect_protection({address_of(start), to_whole_pages(bytes)}, protection);
  if (protection != usual_protection) protect_inherited({address_of(start), to_whole_pages(bytes)});
  for (Parts each = parts; !each.inside.is_empty(); each = parts_of(pointer_to(each.after.start), each.after.bytes)) {
    hide_if_unreadable(each.inside, protection);
    if (protection == PROT_NONE || !is_ready()) continue;
    if (const int error = open_reserved(each.inside, protection)) return failed(error, -1);
  }
  const Range inside = parts.inside.cut_to(arena());
  if (!inside.is_empty() && protection != usual_protection) {
    const Guard guard(program.lock);
    program.extents.mark(inside, Extents::was_protected);
  }
  return real().mprotect(start, bytes, protection);
}
