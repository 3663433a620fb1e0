#pragma once

#include "base/file_descriptor.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace tonari::cli {

/// The reason why a program cannot be started, and the exit status of shells for it: 127 not found, 126 not executable.
struct ProgramError {
  std::string text;
  int exit_status;
};

/// Looks for the file that execvp() would execute. Returns nothing if there is an executable one.
std::optional<ProgramError> check_program(const std::string& program);
/// Returns the path of that file. Precondition: check_program() returned nothing.
std::string path_of_program(const std::string& program);
/// Returns the paths of all executable files of this name in the folders of PATH, in their order.
std::vector<std::string> all_paths_of_program(const std::string& name);
/// Returns the reason why execvp() failed with `error`, although check_program() found the program.
ProgramError explain_exec_failure(const std::string& program, int error);

/// All that a new process needs to become a rank, prepared before the fork.
struct Birth {
  int rank = 0;
  bool own_group = true;         ///< Becomes the leader of a process group.
  bool keeps_input = false;      ///< Has our standard input; other ranks have an empty one.
  const char* const* arguments;  ///< Ends with a null pointer, and so does `environment`.
  const char* const* environment;
  std::optional<cpu_set_t> processors;
  sigset_t signals;    ///< Blocked signals, as when `tonari` was started.
  rlimit descriptors;  ///< As when `tonari` was started.
  int report;          ///< A pipe, closed by exec, for an ExecFailure.
};

struct ExecFailure {
  int rank;
  int error;
};

struct Newborn {
  pid_t pid = 0;
  FileDescriptor process;  ///< Readable once it has ended.
  FileDescriptor output;   ///< Read ends of its standard output and standard error.
  FileDescriptor error;
};

/// Starts a rank. Throws SetupError if the system lacks processes, memory or descriptors.
Newborn give_birth(const Birth& birth);

/// Both ends of a pipe, which exec closes.
struct Pipe {
  FileDescriptor reader;
  FileDescriptor writer;
};
Pipe make_pipe();  ///< Throws SetupError.

}  // namespace tonari::cli
