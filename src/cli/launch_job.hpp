#pragma once

#include "base/file_descriptor.hpp"
#include "cli/launch.hpp"
#include "cli/launch_forward.hpp"
#include "cli/launch_program.hpp"
#include "cli/launch_signals.hpp"
#include "job/ending.hpp"
#include "job/job_server.hpp"
#include "job/out_of_memory.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tonari::cli {

/// One run of a program on N ranks, from the first fork to the end of the last process.
///
/// Owns:    the processes it starts, and their process groups: after a failure it kills all of them.
/// Threads: one, which sleeps only in epoll_wait.
class LaunchedJob {
 public:
  LaunchedJob(const LaunchOptions& options, int ranks);  ///< Starts them. Throws SetupError.
  ~LaunchedJob();
  LaunchedJob(LaunchedJob&&) = delete;

  int run();  ///< Returns the exit status when all ranks have ended.
  [[nodiscard]] const job::JobServer& job_server() const noexcept { return job_server_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Source : std::uint32_t { signals, job_server, report, forwarder, process };

  struct Rank {
    pid_t pid = 0;
    bool own_group = true;  // it leads a process group
    FileDescriptor process;
    std::optional<job::Ending> ending;
    bool explained = false;  // a message has said how it ended
  };

  [[nodiscard]] Rank& at(int rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int count() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] bool is_over(int rank) noexcept { return at(rank).ending && !job_server_.runs(rank); }

  // launch_start.cpp
  void start_ranks();
  [[nodiscard]] std::vector<std::string> environment_of_all() const;
  void hear_exec_failures();

  void end_all() noexcept;

  void watch(int descriptor, Source source, int index = 0);
  void wait_for_events();
  [[nodiscard]] int wait_milliseconds() const noexcept;
  void handle(Source source, int index);
  [[nodiscard]] bool are_all_over();
  [[nodiscard]] bool is_finished();

  void program_ended(int rank);
  void hear_failures();
  void explain_ending(int rank);
  void explain_kill(int rank);
  void stop_if_output_is_lost();

  // launch_stop.cpp
  void hear_signals();
  void suspend();
  void stop_at(Clock::time_point when, bool everyone);
  void act_on_deadlines();
  void end_orphans() noexcept;
  void signal_all(int number, bool everyone) noexcept;
  void signal_rank(int rank, int number) noexcept;

  const LaunchOptions& options_;
  SignalInbox signals_;
  job::JobServer job_server_;
  DescriptorLimit limit_;
  Forwarder forwarder_;
  FileDescriptor events_;
  Pipe report_;  // carries the error of a failed exec
  std::vector<Rank> ranks_;

  int status_ = 0;             // the first exit status that is not zero
  int status_of_failure_ = 1;  // of the first failure, used if every program exits with 0
  bool failed_ = false;        // the status must not be zero
  std::optional<int> cause_;   // the rank whose end stops the others; -1 if no rank caused it
  bool quiet_ = false;         // the reason is known why the other ranks end
  int end_signals_ = 0;        // signals from outside that asked for the end
  bool output_given_up_ = false;
  bool output_lost_ = false;       // standard output cannot be written, and its reader is not gone
  bool bad_status_named_ = false;  // a rank that exited with another status than 0
  job::OutOfMemoryWatch memory_;
  bool everyone_ = false;                     // stopping includes ranks with a death handler
  std::optional<Clock::time_point> ask_at_;   // to end, by SIGTERM
  std::optional<Clock::time_point> kill_at_;  // by SIGKILL
  std::optional<Clock::time_point> timeout_at_;
};

}  // namespace tonari::cli
