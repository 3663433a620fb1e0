#pragma once

#include "base/file_descriptor.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver {

/// A program to run, with what its environment has beyond ours.
struct Command {
  std::vector<std::string> arguments;    ///< The first is looked up in PATH.
  std::vector<std::string> environment;  ///< NAME=VALUE
};

/// As a shell would take it.
std::string to_string(const Command& command);

/// Thrown when a signal asked us to stop. The child is gone by then.
struct Interrupted {
  int signal;
};

/// Takes the signals that end a program, so that the children can be ended first. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(StopSignals&&) = delete;
};

/// Memory that another process of this user can open by a path as long as we live, and of which nothing stays behind.
class ResultFile {
 public:
  ResultFile();  ///< Throws SetupError.

  [[nodiscard]] std::string path() const;
  /// Calls `take` for every whole line written since the last call.
  void read_lines(const std::function<void(std::string_view)>& take);

 private:
  FileDescriptor file_;
  std::string unfinished_;
  long offset_ = 0;
};

/// Runs `command` to its end in a process group of its own, its standard output going to our standard error, and calls
/// `look` a few times a second and once after the end. Answers the exit status, or 128 + the signal that killed it.
/// Needs StopSignals: when one comes, the group is asked to stop, killed after some seconds, and Interrupted is thrown.
int run_child(const Command& command, const std::function<void()>& look);

}  // namespace tonari::bench::driver
