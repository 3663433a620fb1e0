#pragma once

#include "preload/address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tonari::far {

using preload::Address;

// Where the program's threads serve their own faults, a system call that meets an absent page fails with EFAULT,
// whoever makes it: the program, libc for itself, or a raw `syscall` instruction. A filter of the kernel (seccomp)
// recognises such calls by their arguments, before they begin: if an address is in the zone, the thread gets SIGSYS
// instead, and its handler makes the call (trapped_calls.hpp).
//
// Programs that are executed later inherit the filter, but no handler. So nothing else may be in the zone, and it is at
// the same addresses in all processes.

/// The arena is somewhere in the zone: from 64 to 72 TiB. The kernel, sanitizers, and engines that choose addresses
/// themselves (V8 and others, below 64 TiB) place nothing there. The first page of the zone is for the filter.
inline constexpr Address zone_start = 0x4000'0000'0000;
inline constexpr std::size_t zone_bytes = 0x0800'0000'0000;

/// In siginfo_t's si_errno, for calls that this filter has stopped.
inline constexpr int filter_mark = 0x746f;

/// Returns true if the kernel knows such filters.
bool can_filter_calls() noexcept;

/// Prepares call_unfiltered(). Returns 0, or an error number, for example if the zone is not free.
int map_unfiltered_code() noexcept;

/// Filters the system calls of all threads of this process, for ever. The handler of SIGSYS must be there already. A
/// user without CAP_SYS_ADMIN also gives up the rights of setuid programs, for the programs that this process executes.
/// Returns 0 or an error number.
int filter_calls() noexcept;

/// Makes a system call that the filter lets pass. Returns the kernel's result.
long call_unfiltered(long number, const std::array<long, 6>& words);

}  // namespace tonari::far
