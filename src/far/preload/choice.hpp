#pragma once

namespace tonari::far {

/// Called before main(): looks whether the program is instrumented by a sanitizer, uses Go, or is part of an MPI job.
void look_at_program() noexcept;

/// Returns true if the threads of this process may serve their own faults without trouble. Returns false in three
/// cases. A debugger would stop at each SIGBUS. Not only the program's own system calls write into its memory, but also
/// other processes, network cards, or asynchronous calls. Or code runs where the signal cannot be handled:
/// in threads of libc that block it, or on small or absent stacks.
bool suits_own_faults() noexcept;

}  // namespace tonari::far
