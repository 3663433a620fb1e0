#pragma once

#include <cstddef>
#include <cstring>

namespace tonari {

/// Starts to fetch the cache line at `address` for writing, which takes it away from the core that has it. A hint: it
/// never faults.
inline void prefetch_to_write(const void* address) noexcept {
#if defined(__x86_64__)
  // __builtin_prefetch(address, 1) compiles to a prefetch for reading unless the compiler may assume that the processor
  // has this instruction. Processors without the instruction execute it as a no-op.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

/// Copies like std::memcpy, into memory whose cache lines another core has. Processors that can overwrite whole lines
/// do so instead of fetching them first.
inline void copy_without_fetching(void* to, const void* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  // Words, because older processors copy bytes slowly. The instruction pays off for about 8 KiB and more.
  std::size_t words = bytes / 8;
  asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
  bytes %= 8;
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace tonari
