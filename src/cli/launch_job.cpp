#include "cli/launch_job.hpp"

#include "base/error.hpp"
#include "cli/standard_streams.hpp"
#include "job/identity.hpp"
#include "job/session.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace tonari::cli {

namespace {

// Time between a death that stops the job, and SIGTERM for ranks that have not ended by themselves.
constexpr std::chrono::seconds patience{1};

}  // namespace

Settings settings_of_ranks(const LaunchOptions& options) {
  std::vector<std::string> overrides;
  const auto known = describe_settings();
  for (const std::string& pair : options.environment) {
    const auto is_named = [&](const SettingText& text) { return pair.starts_with(std::string{text.name} + "="); };
    if (std::ranges::any_of(known, is_named)) overrides.push_back(pair);
  }
  if (!options.apart.empty()) overrides.push_back("TONARI_APART=" + options.apart);
  if (!options.network.empty()) overrides.push_back("TONARI_NETWORK=" + options.network);
  return read_settings(overrides);
}

LaunchedJob::LaunchedJob(const LaunchOptions& options, int ranks)
    : options_(options),
      job_server_(ranks, settings_of_ranks(options)),
      limit_(ranks),
      forwarder_(ranks, options.tag_output),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      report_(make_pipe()),
      ranks_(static_cast<std::size_t>(ranks)) {
  if (!events_) throw_system_error("epoll_create1");
  // Processes that a rank leaves running become our children: see end_orphans().
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) throw_system_error("prctl(PR_SET_CHILD_SUBREAPER)");
  watch(signals_.descriptor(), Source::signals);
  watch(job_server_.descriptor(), Source::job_server);
  watch(forwarder_.descriptor(), Source::forwarder);
  watch(report_.reader.number(), Source::report);
  if (options.timeout_seconds > 0) {
    const std::chrono::duration<double> limit{options.timeout_seconds};
    timeout_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  }
  try {
    start_ranks();
  } catch (...) {
    failed_ = true;
    end_all();
    throw;
  }
}

LaunchedJob::~LaunchedJob() { end_all(); }

// Ranks that have ended stay zombies until here, so that the system does not reuse their process and group numbers.
void LaunchedJob::end_all() noexcept {
  for (Rank& rank : ranks_) {
    if (rank.pid == 0) continue;
    if (!rank.ending) ::kill(rank.pid, SIGKILL);
    if (failed_ && rank.own_group) ::kill(-rank.pid, SIGKILL);  // processes that it started and left running
    ::waitpid(rank.pid, nullptr, 0);
    rank.pid = 0;
  }
}

int LaunchedJob::run() {
  while (!is_finished()) wait_for_events();
  if (end_signals_ != 0 || failed_) end_orphans();
  if (status_ != 0) return status_;
  return failed_ ? status_of_failure_ : 0;
}

bool LaunchedJob::are_all_over() {
  for (int rank = 0; rank < count(); ++rank) {
    if (!is_over(rank)) return false;
  }
  return true;
}

bool LaunchedJob::is_finished() {
  if (!are_all_over()) return false;
  for (int rank = 0; rank < count(); ++rank) forwarder_.finish(rank);
  stop_if_output_is_lost();
  return forwarder_.is_flushed() || output_given_up_;
}

void LaunchedJob::watch(int descriptor, Source source, int index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint32_t>(index);
  if (::epoll_ctl(events_.number(), EPOLL_CTL_ADD, descriptor, &event) != 0) throw_system_error("epoll_ctl");
}

void LaunchedJob::wait_for_events() {
  std::array<epoll_event, 64> events;
  const int ready = ::epoll_wait(events_.number(), events.data(), static_cast<int>(events.size()), wait_milliseconds());
  for (int i = 0; i < ready; ++i) {
    const auto data = events[static_cast<std::size_t>(i)].data.u64;
    handle(static_cast<Source>(data >> 32), static_cast<int>(data & 0xffffffff));
    stop_if_output_is_lost();  // before it is reported that ranks were killed by SIGPIPE
  }
  act_on_deadlines();
  stop_if_output_is_lost();
}

int LaunchedJob::wait_milliseconds() const noexcept {
  auto next = Clock::time_point::max();
  for (const auto& deadline : {ask_at_, kill_at_, timeout_at_, forwarder_.due()}) {
    if (deadline) next = std::min(next, *deadline);
  }
  if (next == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

void LaunchedJob::handle(Source source, int index) {
  switch (source) {
    case Source::signals: return hear_signals();
    case Source::job_server: job_server_.step(); return hear_failures();
    case Source::forwarder: return forwarder_.step();
    case Source::report: return hear_exec_failures();
    case Source::process: return program_ended(index);
  }
}

void LaunchedJob::program_ended(int rank) {
  Rank& ended = at(rank);
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, ended.process.number(), nullptr);
  hear_exec_failures();  // the reason, if the program was never executed
  job_server_.step();    // the reason, if it died in the job before its process ended
  hear_failures();

  ended.ending = job::ending_of(ended.process, ended.pid);
  job_server_.program_ended(rank, ended.pid, *ended.ending);
  hear_failures();
  const int status = ended.ending->exit_status();
  if (status_ == 0 && (!cause_ || *cause_ == rank)) status_ = status;
  explain_ending(rank);
  if (ended.ending->signal == SIGKILL) explain_kill(rank);
}

// After the message that the rank was killed.
void LaunchedJob::explain_kill(int rank) {
  if (!memory_.has_killed()) return;
  forwarder_.say(fmt::format("{}; use fewer ranks on this host, or less memory in each",
                             job::OutOfMemoryWatch::explanation_for(fmt::format("rank {}", rank))));
  memory_ = {};  // each kill explains one rank
}

void LaunchedJob::hear_failures() {
  while (const auto failure = job_server_.next_failure()) {
    if (!failed_) status_of_failure_ = failure->exit_status;
    failed_ = true;
    if (failure->rank >= 0) at(failure->rank).explained = true;
    if (!quiet_) forwarder_.say(failure->text);
    if (failure->aborts && !cause_) {
      status_ = failure->exit_status;
      stop_at(Clock::now() + patience, true);
    }
    if (failure->stops && !cause_) {
      cause_ = failure->rank;
      quiet_ = true;  // the other ranks end because of this one
      stop_at(Clock::now() + patience, false);
    }
  }
}

// Names a rank that failed, but was in no job or had left it: the job server reports the others. If several ranks exit
// with a status other than 0, only the first is named: the others mostly fail for the same reason.
void LaunchedJob::explain_ending(int rank) {
  const Rank& ended = at(rank);
  const bool killed = ended.ending->signal != 0;
  if (ended.ending->exit_status() == 0 || ended.explained || quiet_) return;
  if (ended.ending->signal == SIGPIPE && forwarder_.output_error() != 0) return;  // as in any pipeline
  if (!killed && std::exchange(bad_status_named_, true)) return;
  forwarder_.say(fmt::format("rank {} ({}, pid {}, host {}) {}", rank, options_.program.front(), ended.pid,
                             job::this_host_name(), job::describe(*ended.ending)));
}

// Stops the job if its output is lost, for example because the disk is full. When the reader has gone, as in `tonari
// run ... | head`, ranks are killed by SIGPIPE once they write, as in any pipeline.
void LaunchedJob::stop_if_output_is_lost() {
  const int error = forwarder_.output_error();
  if (error == 0 || error == EPIPE || std::exchange(output_lost_, true)) return;
  forwarder_.say(output_failure_text(error));
  if (status_ == 0) status_ = 1;
  quiet_ = failed_ = true;
  stop_at(Clock::now(), true);
}

}  // namespace tonari::cli
