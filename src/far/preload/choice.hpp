#pragma once

namespace tonari::far {

/// Called before main(): looks whether the program is instrumented by a sanitizer, uses Go, or is part of an MPI job.
void look_at_program() noexcept;

/// Returns true if the threads of this process may serve their own faults without trouble. Returns false in three
/// cases. A debugger would stop at each SIGBUS. Something else than the program's own system calls writes into its
/// memory: other processes, network cards, or the kernel's asynchronous I/O. Code runs where the signal cannot be
/// handled, in threads of libc that block it, or on small or absent stacks.
bool suits_own_faults() noexcept;

}  // namespace tonari::far
