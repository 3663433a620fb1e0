#pragma once

#include <cstdint>
#include <ctime>

namespace tonari {

/// Returns the nanoseconds of CLOCK_MONOTONIC, which is the same clock in all processes of a host. About 20 ns per
/// call.
inline std::uint64_t monotonic_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Tells the processor that this is a waiting loop. Takes some tens of cycles and leaves the core to its other hardware
/// thread meanwhile.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // waits about as long as x86's pause; AArch64's yield does not wait at all
#endif
}

}  // namespace tonari
