// The part of JobServer that handles ranks that do not join and ranks that end.

#include "job/job_server.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <string_view>
#include <utility>

namespace tonari::job {

namespace {

constexpr int missing_named_max = 8;
// Stands for the ending of a rank that has not ended, or will end only later.
constexpr Ending failed_without_end{.signal = 0, .status = 1};

constexpr std::string_view lives(int count) noexcept { return count == 1 ? "lives" : "live"; }

}  // namespace

void JobServer::program_ended(int rank, pid_t process, const Ending& ending) {
  door(rank).program = ending;
  door(rank).program_pid = process;
  report_abort();
  look_for_the_missing();
}

// A rank whose program has ended will not join any more.
void JobServer::look_for_the_missing() {
  if (!is_joining()) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Door& at = door(rank);
    if (at.state != State::away || !at.program) continue;
    stop_joining(rank,
                 fmt::format("{} {} before it joined, and other ranks wait for it: every rank must join (make a "
                             "tonari::Job, or call MPI_Init), or none",
                             name_of(rank, at.program_pid), describe(*at.program)),
                 *at.program);
    return;
  }
}

void JobServer::limit_passed() {
  std::uint64_t times = 0;
  if (::read(limit_.number(), &times, sizeof times) != sizeof times || !is_joining()) return;
  std::string missing;
  int count = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (door(rank).state != State::away) continue;
    if (++count <= missing_named_max) missing += fmt::format("{}{}", count == 1 ? "" : ", ", rank);
  }
  if (count > missing_named_max) missing += fmt::format(" and {} more", count - missing_named_max);
  stop_joining(
      -1,
      fmt::format("{} {} not joined {} s after the first rank did: every rank must join (make a tonari::Job, "
                  "or call MPI_Init), or none; if the program needs longer before it does, set TONARI_JOIN_SECONDS "
                  "higher",
                  (count == 1 ? "rank " : "ranks ") + missing, count == 1 ? "has" : "have", join_seconds_),
      failed_without_end);
}

void JobServer::stop_joining(int rank, std::string text, const Ending& ending) {
  stopped_ = true;
  report(rank, std::move(text), ending, others_than(rank));
  const Reply stop = reply(Step::stop);
  send_to_all(stop);
}

void JobServer::process_ended(int rank) {
  Door& at = door(rank);
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, at.process.number(), nullptr);
  report_abort();
  report_marked_deaths();
  at.ended = true;
  if (at.reported || aborted_) return;

  const auto phase = arena_.block(rank).phase.load(std::memory_order_acquire);
  if (phase == Phase::left || (phase == Phase::leaving && arena_.all_leave())) return;

  const Ending ending = ending_of(at.process, at.pid);
  std::string text = fmt::format("{} {}", name_of(rank, at.pid), describe(ending));
  if (!open_) {
    if (!stopped_) stop_joining(rank, text + " while the ranks were joining", ending);
    return;
  }
  if (ending.signal == 0) {
    text +=
        " without leaving the job: before a rank exits, it must destroy its tonari::Job, or call MPI_Finalize or "
        "MPI_Session_finalize";
  }
  const Others others = others_than(rank);  // counted before the other ranks learn of the death
  arena_.mark_dead(rank, ending.signal, ending.status);
  report(rank, std::move(text), ending, others);
}

// Called before the end of a rank is reported: an abort ends all ranks, and the aborting rank need not be the first.
void JobServer::report_abort() {
  const auto abort = arena_.aborted();
  if (!abort || std::exchange(aborted_, true)) return;
  const auto [stopped, living_on] = others_than(abort->rank);
  report(abort->rank,
         fmt::format("{} aborted the job with code {}", name_of(abort->rank, door(abort->rank).pid), abort->code),
         {.signal = 0, .status = abort->exit_status()}, {.stopped = stopped + living_on, .living_on = 0});
  failures_.back().aborts = true;
}

// Reports ranks that marked themselves dead because an exception made them leave. Their processes may continue.
void JobServer::report_marked_deaths() {
  for (int rank = 0; rank < ranks_; ++rank) {
    const Door& at = door(rank);
    if (at.reported || arena_.block(rank).phase.load(std::memory_order_acquire) != Phase::dead) continue;
    report(rank, name_of(rank, at.pid) + " left the job because of an exception", failed_without_end,
           others_than(rank));
  }
}

void JobServer::report(int rank, std::string text, const Ending& ending, Others others) {
  if (rank >= 0) door(rank).reported = true;
  const auto [stopped, living_on] = others;
  if (stopped > 0 && living_on > 0) {
    text += fmt::format("; stopping {} of the other ranks, {} {} on", stopped, living_on, lives(living_on));
  } else if (stopped > 0) {
    const std::string_view other = rank >= 0 ? "other " : "";
    text += stopped == 1 ? fmt::format("; stopping the {}rank", other)
                         : fmt::format("; stopping the {}{} ranks", other, stopped);
  } else if (living_on > 0) {
    text += fmt::format("; {} other rank{} {} on", living_on, living_on == 1 ? "" : "s", lives(living_on));
  } else if (rank >= 0 && ranks_ > 1) {
    text += "; no other rank is left in the job";
  }
  const int status = ending.exit_status();
  failures_.push_back(
      {.rank = rank, .text = std::move(text), .stops = stopped > 0, .exit_status = status > 0 ? status : 1});
}

// Counts the ranks that a failure of `rank` stops, and the ranks that continue because they have a death handler.
JobServer::Others JobServer::others_than(int rank) const noexcept {
  Others others;
  for (int other = 0; other < ranks_; ++other) {
    const auto phase = arena_.block(other).phase.load(std::memory_order_acquire);
    const bool gone = phase >= Phase::left || (joined(other) ? door(other).ended : door(other).program.has_value());
    if (other != rank && !gone) ++(lives_on(other) ? others.living_on : others.stopped);
  }
  return others;
}

std::string JobServer::name_of(int rank, pid_t process) const {
  return fmt::format("rank {} (pid {}, host {})", rank, process, host_name_);
}

}  // namespace tonari::job
