#pragma once

#include "base/file_descriptor.hpp"

#include <sys/types.h>

#include <string>

namespace tonari::job {

/// How a process ended: by a signal, or by exiting with a status.
struct Ending {
  static constexpr int unknown = -1;

  int signal = 0;  ///< The signal that killed it, or 0.
  int status = 0;  ///< If no signal killed it: its exit status, or unknown.

  /// Exit status in the convention of shells: the status, or 128 + the signal.
  [[nodiscard]] int exit_status() const noexcept { return signal != 0 ? 128 + signal : status; }
};

/// Returns a phrase such as "was killed by signal 9 (Killed)" or "exited with status 3".
std::string describe(const Ending& ending);

/// Returns a descriptor that becomes readable when the process ends. Empty, with errno set, if there is no such
/// process.
FileDescriptor open_process(pid_t process) noexcept;
/// The same for a child of this process. Throws SetupError.
FileDescriptor open_own_process(pid_t process);

/// Returns how an ended process ended. Exact for a child, which can still be waited for afterwards. For other processes
/// it depends on what the kernel reports (always from Linux 6.15 on); otherwise unknown.
Ending ending_of(const FileDescriptor& process, pid_t id) noexcept;

/// Sends a signal to a process opened by open_process(). Does nothing after the process has ended.
void send_signal(const FileDescriptor& process, int signal) noexcept;

}  // namespace tonari::job
