#include "far/preload/begin.hpp"
#include "far/preload/inherited.hpp"
#include "far/preload/memory.hpp"
#include "far/preload/real.hpp"
#include "preload/exported.hpp"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

// Replaces malloc and its relatives. Large allocations go to the arena. All others, and large ones that find no room,
// go to the real function, which also reports wrong arguments.
namespace tonari::far {

namespace {

// Returns nullptr if the allocation does not go to the arena.
void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes < program.bytes_min.load(std::memory_order_relaxed)) [[likely]]
    return nullptr;  // see Program
  return make_ready() ? pointer_to(take(bytes, alignment, Extents::is_allocated)) : nullptr;
}

void* allocate_anywhere(std::size_t bytes) noexcept {
  void* const start = allocate(bytes, page_bytes);
  return start != nullptr ? start : real().malloc(bytes);
}

// Returns the extent that allocate() returned at `start`; empty for any other address. If the program's own allocator
// maps its memory, its small pieces are in the arena, and are freed often. So only addresses at the start of a page are
// looked up.
Extents::Extent allocation_at(const void* start) noexcept {
  if (!is_in_arena(start)) [[likely]]
    return {};
  if (address_of(start) % page_bytes != 0 || !is_ready()) return {};
  const Guard guard(program.lock);
  const Extents::Extent extent = program.extents.find(address_of(start));
  const bool is_ours = extent.start == address_of(start) && (extent.marks & Extents::is_allocated) != 0;
  return is_ours ? extent : Extents::Extent{};
}

void release(void* start) noexcept {
  if (const Extents::Extent extent = allocation_at(start); !extent.is_empty()) return give_back(extent);
  if (const Extents::Extent extent = inherited_allocation_at(start); !extent.is_empty()) return free_inherited(extent);
  if (!is_early(start) && !is_lost(start)) real().free(start);
}

std::size_t usable_bytes(void* start) noexcept {
  if (is_early(start)) return early_bytes(start);
  if (const Extents::Extent extent = inherited_allocation_at(start); !extent.is_empty()) return extent.bytes;
  return is_lost(start) ? 0 : real().malloc_usable_size(start);
}

void* reallocate_far(const Extents::Extent& before, std::size_t bytes) noexcept {
  void* const start = pointer_to(before.start);
  if (bytes > PTRDIFF_MAX) return failed(ENOMEM, nullptr);
  const std::size_t whole = to_whole_pages(bytes);
  if (whole <= before.bytes) {
    give_back({before.start + whole, before.bytes - whole});
    return whole != 0 ? start : nullptr;
  }
  if (extend(before.end(), whole - before.bytes)) return start;
  void* const to = allocate_anywhere(bytes);
  if (to == nullptr) return nullptr;
  std::memcpy(to, start, before.bytes);
  give_back(before);
  return to;
}

void* reallocate(void* start, std::size_t bytes) noexcept {
  if (start == nullptr) return allocate_anywhere(bytes);
  if (const Extents::Extent before = allocation_at(start); !before.is_empty()) return reallocate_far(before, bytes);
  const bool is_real = !is_early(start) && inherited_allocation_at(start).is_empty();
  void* const to = is_real ? allocate(bytes, page_bytes) : allocate_anywhere(bytes);
  if (to == nullptr) return is_real ? real().realloc(start, bytes) : nullptr;
  std::memcpy(to, start, std::min(bytes, usable_bytes(start)));
  release(start);
  return to;
}

// Also returns nullptr if the alignment is invalid; the real function then reports it.
void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
  return std::has_single_bit(alignment) ? allocate(bytes, alignment) : nullptr;
}

}  // namespace

}  // namespace tonari::far

using namespace tonari::far;

TONARI_EXPORTED void* malloc(std::size_t bytes) noexcept { return allocate_anywhere(bytes); }

TONARI_EXPORTED void* calloc(std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return failed(ENOMEM, nullptr);
  void* const start = allocate(all, page_bytes);  // the arena's memory reads as zeros
  return start != nullptr ? start : real().calloc(count, bytes);
}

TONARI_EXPORTED void* realloc(void* start, std::size_t bytes) noexcept { return reallocate(start, bytes); }

TONARI_EXPORTED void* reallocarray(void* start, std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  return __builtin_mul_overflow(count, bytes, &all) ? failed(ENOMEM, nullptr) : reallocate(start, all);
}

TONARI_EXPORTED void free(void* start) noexcept { release(start); }

TONARI_EXPORTED void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  void* const start = allocate_aligned(alignment, bytes);
  return start != nullptr ? start : real().memalign(alignment, bytes);
}

TONARI_EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  void* const start = allocate_aligned(alignment, bytes);
  return start != nullptr ? start : real().aligned_alloc(alignment, bytes);
}

TONARI_EXPORTED int posix_memalign(void** start, std::size_t alignment, std::size_t bytes) noexcept {
  if (alignment % sizeof(void*) == 0) {
    if (void* const far = allocate_aligned(alignment, bytes)) {
      *start = far;
      return 0;
    }
  }
  return real().posix_memalign(start, alignment, bytes);
}

TONARI_EXPORTED void* valloc(std::size_t bytes) noexcept {
  void* const start = allocate(bytes, page_bytes);
  return start != nullptr ? start : real().valloc(bytes);
}

TONARI_EXPORTED void* pvalloc(std::size_t bytes) noexcept {
  void* const start = allocate(bytes, page_bytes);
  return start != nullptr ? start : real().pvalloc(bytes);
}

TONARI_EXPORTED std::size_t malloc_usable_size(void* start) noexcept {
  const Extents::Extent extent = allocation_at(start);
  return extent.is_empty() ? usable_bytes(start) : extent.bytes;
}
