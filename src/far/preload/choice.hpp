#pragma once

namespace tonari::far {

/// Called before main(): looks whether the program is instrumented by a sanitizer.
void look_for_sanitizers() noexcept;

/// Returns true if the threads of this process may serve their own faults without trouble. They should not if a
/// debugger would stop at each SIGBUS, or if something else than the program's own system calls writes into its memory:
/// other processes (MPI's single copies), network cards, the kernel's asynchronous I/O.
bool suits_own_faults() noexcept;

}  // namespace tonari::far
