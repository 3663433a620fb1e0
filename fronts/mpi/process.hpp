#pragma once

#include "message/message_runtime.hpp"
#include "mpi/comm.hpp"
#include "mpi/errhandler.hpp"

#include <tonari/job.hpp>

#include <memory>
#include <string>
#include <thread>

namespace tonari::mpi {

/// The process's membership in its job, from MPI_Init or the first session on.
///
/// A process joins a job once, so it does not leave after each session. It leaves, which waits until all ranks leave,
/// in MPI_Finalize, if it has no session then; at the end of its last session, if that is after MPI_Finalize; and if it
/// has never called MPI_Init, when it exits. A process that exits with MPI or a session running counts as dead.
///
/// Threads: any. Threads that start or end the world model or a session wait for each other.
class Process {
 public:
  /// Starts the world model. Throws Failure.
  static void start(int thread_level);
  /// Ends the world model. Throws Failure, and has ended nothing, if a delete callback of MPI_COMM_SELF's attributes
  /// fails.
  static void finish();
  /// Begins and ends a session. Throws Failure.
  static void enter_session();
  static void leave_session();
  /// The process, while the world model or a session runs. Null before and after.
  [[nodiscard]] static Process* current() noexcept;

  /// The state of the world model.
  enum class Phase { before, running, after };
  [[nodiscard]] static Phase phase() noexcept;

  /// Ends all ranks of the job with this exit status. `text` says why; the runtime adds a line with the rank.
  [[noreturn]] static void abort(int code, const std::string& text) noexcept;

  [[nodiscard]] Job& job() noexcept { return job_; }
  [[nodiscard]] message::MessageRuntime& runtime() noexcept { return runtime_; }
  [[nodiscard]] int thread_level() const noexcept { return thread_level_; }
  [[nodiscard]] std::thread::id main_thread() const noexcept { return main_thread_; }

 private:
  explicit Process(int thread_level);
  static void join(int thread_level);
  static void leave_unless_used();
  static void at_exit() noexcept;

  Job job_;
  message::MessageRuntime& runtime_;
  int thread_level_;
  std::thread::id main_thread_ = std::this_thread::get_id();
};

}  // namespace tonari::mpi
