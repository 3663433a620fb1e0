#pragma once

#include "preload/next.hpp"

#include <sys/types.h>

#include <cstddef>

namespace tonari::far {

/// The functions that the program would call without the preload library: libc's, or its own allocator's.
struct Real {
  void* (*malloc)(std::size_t bytes);
  void* (*calloc)(std::size_t count, std::size_t bytes);
  void* (*realloc)(void* start, std::size_t bytes);
  void (*free)(void* start);
  void* (*memalign)(std::size_t alignment, std::size_t bytes);
  void* (*aligned_alloc)(std::size_t alignment, std::size_t bytes);
  int (*posix_memalign)(void** start, std::size_t alignment, std::size_t bytes);
  void* (*valloc)(std::size_t bytes);
  void* (*pvalloc)(std::size_t bytes);
  std::size_t (*malloc_usable_size)(void* start);

  void* (*mmap)(void* start, std::size_t bytes, int protection, int flags, int descriptor, off_t offset);
  int (*munmap)(void* start, std::size_t bytes);
  void* (*mremap)(void* start, std::size_t bytes, std::size_t wanted, int flags, ...);
  int (*madvise)(void* start, std::size_t bytes, int advice);
  int (*posix_madvise)(void* start, std::size_t bytes, int advice);
  int (*mprotect)(void* start, std::size_t bytes, int protection);
};

/// Returns them; looks them up at the first call. The look-up itself allocates a little early memory, which is never
/// freed.
const Real& real() noexcept;

bool is_early(const void* start) noexcept;
std::size_t early_bytes(const void* start) noexcept;

}  // namespace tonari::far
