// LaunchedJob: stopping, by signals from outside, by the time limit, or by the death of a rank.

#include "cli/launch_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace tonari::cli {

namespace {

constexpr int timed_out = 124;            // as for timeout(1)
constexpr std::chrono::seconds grace{3};  // between SIGTERM and SIGKILL

// Sends a signal to a process and its descendants. Children first: after the death of their parent they cannot be
// found.
void signal_tree(pid_t process, int number) {
  std::ifstream children{fmt::format("/proc/{}/task/{}/children", process, process)};
  for (pid_t child = 0; children >> child;) signal_tree(child, number);
  ::kill(process, number);
}

}  // namespace

void LaunchedJob::hear_signals() {
  while (const auto signal = signals_.next()) {
    if (signal->number == SIGTSTP) {
      suspend();
      continue;
    }
    const bool asks_for_end = signal->number != SIGUSR1 && signal->number != SIGUSR2;
    if (asks_for_end) ++end_signals_;
    if (asks_for_end) quiet_ = true;                              // the sender knows why the ranks end
    if (asks_for_end && are_all_over()) output_given_up_ = true;  // only output is left, which nobody reads
    if (end_signals_ > 1) {
      failed_ = output_given_up_ = true;
      signal_all(SIGKILL, true);
      continue;
    }
    for (int rank = 0; rank < count(); ++rank) {
      const bool has_it = signal->from_terminal && !at(rank).own_group;
      if (!has_it) signal_rank(rank, signal->number);
    }
  }
}

// Ctrl-Z at the terminal. Ranks in process groups of their own have not received it.
void LaunchedJob::suspend() {
  for (int rank = 0; rank < count(); ++rank) {
    if (at(rank).own_group) signal_rank(rank, SIGTSTP);
  }
  ::kill(::getpid(), SIGSTOP);
  for (int rank = 0; rank < count(); ++rank) {  // continued by SIGCONT from the shell
    if (at(rank).own_group) signal_rank(rank, SIGCONT);
  }
}

void LaunchedJob::stop_at(Clock::time_point when, bool everyone) {
  everyone_ = everyone_ || everyone;
  if (!ask_at_ || when < *ask_at_) ask_at_ = when;
}

void LaunchedJob::act_on_deadlines() {
  const auto now = Clock::now();
  const auto has_come = [&](std::optional<Clock::time_point>& deadline) {
    if (!deadline || now < *deadline) return false;
    deadline.reset();
    return true;
  };
  if (has_come(timeout_at_) && !are_all_over()) {
    forwarder_.say(fmt::format("the job has run for {} s (--timeout); stopping its {} rank{}", options_.timeout_seconds,
                               count(), count() == 1 ? "" : "s"));
    status_ = timed_out;
    quiet_ = failed_ = true;
    stop_at(now, true);
  }
  if (has_come(ask_at_)) {
    signal_all(SIGTERM, everyone_);
    kill_at_ = now + grace;
  }
  if (has_come(kill_at_)) signal_all(SIGKILL, everyone_);
  if (const auto due = forwarder_.due(); due && now >= *due) forwarder_.step();
}

void LaunchedJob::signal_all(int number, bool everyone) noexcept {
  for (int rank = 0; rank < count(); ++rank) {
    if (everyone || !job_server_.lives_on(rank)) signal_rank(rank, number);
  }
}

// Kills processes that a wrapper in our group started at the moment when it was killed.
void LaunchedJob::end_orphans() noexcept {
  std::ifstream children{fmt::format("/proc/self/task/{}/children", ::getpid())};
  for (pid_t child = 0; children >> child;) signal_tree(child, SIGKILL);
}

void LaunchedJob::signal_rank(int rank, int number) noexcept {
  const Rank& to = at(rank);
  if (to.pid == 0 || is_over(rank)) return;
  if (to.own_group) {
    ::kill(-to.pid, number);
  } else {
    signal_tree(to.pid, number);  // its group is ours
  }
  // A wrapper such as gdb may have put the program into a group of its own.
  const pid_t joined = job_server_.process(rank);
  if (to.own_group && job_server_.runs(rank) && ::getpgid(joined) != to.pid) job_server_.send_signal(rank, number);
}

}  // namespace tonari::cli
