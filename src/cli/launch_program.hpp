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

/// Why a program cannot be started, and the exit status that shells give then: 127 not found, 126 not executable.
struct ProgramError {
  std::string text;
  int exit_status;
};

/// Looks for what execvp() would run. Nothing when it would find something executable.
std::optional<ProgramError> check_program(const std::string& program);
/// Where execvp() would find what check_program() has found.
std::string path_of_program(const std::string& program);
/// The same for one that was found and did not start.
ProgramError explain_exec_failure(const std::string& program, int error);

/// What a new process needs to become a rank. Everything is prepared before the fork.
struct Birth {
  int rank = 0;
  bool own_group = true;         ///< Leads a process group of its own.
  bool keeps_input = false;      ///< Reads our standard input; others read nothing.
  const char* const* arguments;  ///< Ends with a null pointer, as `environment` does.
  const char* const* environment;
  std::optional<cpu_set_t> processors;
  sigset_t signals;    ///< To block, as they were when we were started.
  rlimit descriptors;  ///< As it was when we were started.
  int report;          ///< A pipe, closed by exec: takes an ExecFailure.
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

/// Starts one. Throws SetupError when the system gives no process, memory or descriptors.
Newborn give_birth(const Birth& birth);

/// Both ends of a pipe that is closed by exec: first to read, then to write. Throws SetupError.
struct Pipe {
  FileDescriptor reader;
  FileDescriptor writer;
};
Pipe make_pipe();

}  // namespace tonari::cli
