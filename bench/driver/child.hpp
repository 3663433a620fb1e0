#pragma once

#include "base/file_descriptor.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver {

/// A program to run, with additions to the environment.
struct Command {
  std::vector<std::string> arguments;    ///< The first is looked up in PATH.
  std::vector<std::string> environment;  ///< NAME=VALUE
};

/// Returns the command line in the form that a shell accepts.
std::string to_string(const Command& command);

/// Thrown after a signal to stop, once the child has ended.
struct Interrupted {
  int signal;
};

/// Blocks the signals that would end this program, so that it can end its children first. At most one object exists.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(StopSignals&&) = delete;
};

/// A file in memory that other processes of this user can open by its path. It vanishes with this process.
class ResultFile {
 public:
  ResultFile();  ///< Throws SetupError.

  [[nodiscard]] std::string path() const;
  /// Calls `take` for every complete line written since the last call.
  void read_lines(const std::function<void(std::string_view)>& take);

 private:
  FileDescriptor file_;
  std::string unfinished_;
  long offset_ = 0;
};

/// Runs `command` to its end, in its own process group, with its standard output redirected to `output`. Calls
/// `look` a few times per second, and once after the end. Returns the exit status, or 128 + the signal that killed it.
/// A StopSignals must exist: on such a signal this sends SIGTERM to the group, kills it after 5 seconds, and throws
/// Interrupted.
int run_child(const Command& command, const std::function<void()>& look, int output = 2);

}  // namespace tonari::bench::driver
