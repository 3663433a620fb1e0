#pragma once

namespace tonari::far {

/// From now on a system call of any thread may have memory in the arena as its arguments, however it is made: the
/// filter stops it, and the handler of SIGSYS makes it. Returns false if that is not possible. Any thread; only the
/// first call does it, and forked children inherit it. Needs expect_faults().
bool trap_calls() noexcept;

}  // namespace tonari::far
