#pragma once

#include <sys/types.h>

#include <cstdio>

namespace tonari::preload {

/// Forgets that popen() has made the stream. Call it before the stream is closed: later, another one may have the same
/// address. Returns the process that must be waited for once it is closed, or 0 if there is none, or libc waits.
pid_t forget_command(const FILE* stream) noexcept;

/// Waits for the end of the process, and returns its status, or -1.
int wait_for_command(pid_t process) noexcept;

}  // namespace tonari::preload
