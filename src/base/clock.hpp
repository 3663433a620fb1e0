#pragma once

#include <cstdint>
#include <ctime>

namespace tonari {

/// Nanoseconds of CLOCK_MONOTONIC: the same clock in all processes of a host. About 20 ns a call.
inline std::uint64_t monotonic_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Tells the processor that this is a loop that waits: some tens of cycles, and room for the other hardware thread.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // unlike yield it does wait, by about as much as x86's pause
#endif
}

}  // namespace tonari
