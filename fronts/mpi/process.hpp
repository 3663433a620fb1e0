#pragma once

#include "message/message_runtime.hpp"
#include "mpi/comm.hpp"
#include "mpi/errhandler.hpp"

#include <tonari/job.hpp>

#include <memory>
#include <string>
#include <thread>

namespace tonari::mpi {

/// The process's membership in its job, from MPI_Init or the first session to MPI_Finalize.
///
/// Threads: made and destroyed by one thread at a time; any thread may use it in between.
class Process {
 public:
  /// Joins the job. Throws Failure.
  static void start(int thread_level);
  /// Leaves the job: waits until all ranks leave.
  static void finish();
  /// The process, while it is in a job. Null before and after.
  [[nodiscard]] static Process* current() noexcept;

  enum class Phase { before, running, after };
  [[nodiscard]] static Phase phase() noexcept;

  /// Ends all ranks of the job with this exit status. `text` says why.
  [[noreturn]] static void abort(int code, const std::string& text) noexcept;

  [[nodiscard]] Job& job() noexcept { return job_; }
  [[nodiscard]] message::MessageRuntime& runtime() noexcept { return runtime_; }
  [[nodiscard]] int thread_level() const noexcept { return thread_level_; }
  [[nodiscard]] std::thread::id main_thread() const noexcept { return main_thread_; }

 private:
  explicit Process(int thread_level);

  Job job_;
  message::MessageRuntime& runtime_;
  int thread_level_;
  std::thread::id main_thread_ = std::this_thread::get_id();
};

}  // namespace tonari::mpi
