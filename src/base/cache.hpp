#pragma once

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

}  // namespace tonari
