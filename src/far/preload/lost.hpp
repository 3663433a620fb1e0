#pragma once

#include "far/preload/extents.hpp"

// Far memory that a forked child could not inherit: the kernel or the keeper had no room for it.
namespace tonari::far {

/// Lets a touch of such memory end the child with a message, unless the program handles SIGSEGV itself. Called before a
/// fork, because the child may touch it before any code of ours runs there.
void watch_lost_memory() noexcept;
/// Undoes it, in a parent whose fork is done, unless it has lost memory itself.
void unwatch_lost_memory() noexcept;

// Called in a forked child, while it has one thread. The addresses are taken, so that nothing else is mapped there. A
// touch ends the child with a message, and then calls the program's own handler of SIGSEGV.

void lose(Range range) noexcept;
/// Loses all far memory of the parent.
void lose_all() noexcept;

}  // namespace tonari::far
