#pragma once

namespace tonari {

/// Starts fetching the cache line at `address` for writing, away from whoever holds it. A hint: never faults.
inline void prefetch_to_write(const void* address) noexcept {
#if defined(__x86_64__)
  // __builtin_prefetch(address, 1) fetches for reading unless the compiler may assume this instruction, which
  // processors without it take for a no-op.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace tonari
