#pragma once

#include "base/file_descriptor.hpp"

#include <sys/types.h>

#include <string>

namespace tonari::job {

/// How a process ended. Exactly one of the two says why.
struct Ending {
  static constexpr int unknown = -1;

  int signal = 0;  ///< That killed it, or 0.
  int status = 0;  ///< Otherwise what it exited with, or unknown.

  /// As shells count: the status, or 128 + the signal.
  [[nodiscard]] int exit_status() const noexcept { return signal != 0 ? 128 + signal : status; }
};

/// "was killed by signal 9 (Killed)", "exited with status 3".
std::string describe(const Ending& ending);

/// A descriptor that is readable once the process has ended. Empty with errno when there is no such process.
FileDescriptor open_process(pid_t process) noexcept;
/// Of one that we have started. Throws SetupError.
FileDescriptor open_own_process(pid_t process);

/// How an ended process went. For a child of ours exact, and the child stays to be waited for; for another one as far
/// as the kernel tells (always from Linux 6.15 on), else unknown.
Ending ending_of(const FileDescriptor& process, pid_t id) noexcept;

/// Sends a signal to a process that open_process() named. Does nothing once it has ended.
void send_signal(const FileDescriptor& process, int signal) noexcept;

}  // namespace tonari::job
