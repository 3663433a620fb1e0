#pragma once

#include <tonari/rank.hpp>
#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari {

/// Counters of one rank since it joined. Counts start at zero and never fall; gauges are named _now. The messages
/// of which collectives consist count, too; windows and shared memory do not.
struct Statistics {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;            ///< Payload of the messages sent.
  std::uint64_t bytes_direct = 0;          ///< Payload received directly into the user's buffer.
  std::uint64_t bytes_buffered = 0;        ///< Payload received through a head, bulk memory or a kept copy.
  std::uint64_t posted_now = 0;            ///< Receives that wait for a message.
  std::uint64_t posted_max = 0;            ///< The largest value of posted_now.
  std::uint64_t unexpected_now = 0;        ///< Messages that wait for a receive.
  std::uint64_t unexpected_max = 0;        ///< The largest value of unexpected_now.
  std::uint64_t unexpected_bytes_now = 0;  ///< Memory that these messages hold here.
  std::uint64_t unexpected_bytes_max = 0;  ///< The largest value of unexpected_bytes_now.
  std::uint64_t held_back = 0;             ///< Sends that found no room and had to wait.
  std::uint64_t sleeps = 0;                ///< Number of times that a waiting thread gave up its core.
  std::uint64_t wake_ups = 0;              ///< Number of times that this rank woke a sleeping rank.
};

/// How a rank ended. Exactly one of `signal` and `exit_status` says why.
struct Death {
  JobRank rank{-1};
  std::string host;
  int signal = 0;       ///< The signal that killed it, or 0.
  int exit_status = 0;  ///< Without a signal: its exit status. It exited without destroying its Job. -1: unknown,
                        ///< because a wrapper script hid it.
};

/// A set of ranks of a job, in an order: its rank i is the job's rank at(i).
class Group {
 public:
  Group() = default;
  /// Ranks of the job, each at most once. Throws std::invalid_argument on a repeated or negative rank.
  explicit Group(std::vector<JobRank> ranks);
  /// Ranks 0 to `size` - 1.
  static Group first(int size);

  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  /// The rank of the job that is `rank` here, which must be in [0, size()).
  [[nodiscard]] JobRank at(Rank rank) const noexcept { return ranks_[rank.index()]; }
  /// The rank here of a rank of the job, if it is a member. Costs one array access.
  [[nodiscard]] std::optional<Rank> position(JobRank rank) const noexcept {
    const Rank found = rank.index() < positions_.size() ? positions_[rank.index()] : Rank{-1};
    return found < 0 ? std::nullopt : std::optional(found);
  }
  [[nodiscard]] const std::vector<JobRank>& ranks() const noexcept { return ranks_; }

 private:
  std::vector<JobRank> ranks_;
  std::vector<Rank> positions_;  // by rank of the job; -1: not a member
};

namespace job {
class Session;
}

/// The membership of a process in a job of N ranks, 0 to N - 1, on one or several hosts.
///
/// Joining: the constructor detects how the program was started: by `tonari run`, by a launcher with PMIx (mpirun,
///          prterun, srun --mpi=pmix), or alone (a job of one rank). A rank that was started together with others joins
///          once: a second Job throws SetupError. If the process uses tonari's MPI, a Job and MPI share one membership,
///          whichever comes first, and the process leaves when both have ended.
/// Owns:    the mapping of the host's arena, one service thread, and the state of the layers above.
/// Threads: any thread may call anything; construction and destruction happen once each.
/// Leaving: the destructor waits until every rank leaves. Operations of other ranks that still wait for this one return
///          peer_gone half a second later. A rank whose Job is destroyed by an exception, or that exits without
///          destroying it, counts as dead: the other ranks stop, unless on_death() says otherwise.
/// Fork:    a forked child must not use the parent's Job; destroying it there does nothing.
class Job {
 public:
  /// Joins. Throws SetupError, which names the failure and its remedy.
  Job();
  /// For the layers of tonari: a session that `run_as_threads` has made, or that a front shares.
  explicit Job(std::shared_ptr<job::Session> session);
  Job(Job&&) = delete;
  ~Job();

  [[nodiscard]] JobRank rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// All ranks, in order, for loops.
  [[nodiscard]] PositionRange<JobRank> ranks() const noexcept { return PositionRange<JobRank>(size()); }
  /// The rank `distance` places after this one on the ring of all ranks; before it if `distance` is negative.
  [[nodiscard]] JobRank neighbour(int distance) const noexcept { return detail::neighbour(rank(), distance, size()); }
  /// Number of the host that a rank is on, from 0. With TONARI_APART every rank, or every TONARI_APART_RANKS ranks,
  /// count as a host.
  [[nodiscard]] int host(JobRank rank) const noexcept;
  [[nodiscard]] int hosts() const noexcept;
  /// Name of this rank's host.
  [[nodiscard]] const std::string& host_name() const noexcept;

  /// Counters of this rank, read without stopping anything: each is exact, but they are read one after another.
  [[nodiscard]] Statistics statistics() const noexcept;

  /// From now on a death does not end this process: `handler` runs on the service thread, once per rank that dies, and
  /// operations that need a dead rank return Status::peer_gone. It may run before or after they return. It must not
  /// throw, nor wait for other ranks: the service thread serves nothing meanwhile. Without a handler the process exits
  /// with status 1. A launcher may end all ranks nevertheless: docs/modules/job.md.
  void on_death(std::function<void(const Death&)> handler);
  /// False once this rank knows that `rank` died; true for a rank that has left. Without a handler for deaths it ends
  /// the process instead of returning false.
  [[nodiscard]] bool alive(JobRank rank) const noexcept;

  /// Ends the whole job: the processes of all ranks end at once, also of ranks with a handler for deaths, and run no
  /// destructors. `tonari run` exits with `code`, which a launcher with PMIx is told too, and one line names this rank
  /// and the code. An exit status is the low 8 bits of `code`, or 1 if they are 0. If several ranks abort, the first
  /// one counts. Text that this process has written to stdout is not lost. Any thread may call it.
  [[noreturn]] void abort(int code) noexcept;

  /// For the layers of tonari: the session behind this job.
  [[nodiscard]] job::Session& session() noexcept { return *session_; }

 private:
  std::shared_ptr<job::Session> session_;
};

/// Runs `body` as ranks 0 to `ranks` - 1 of a job whose ranks are threads of this process, and waits for all of them:
/// the fabric's test mode, for ThreadSanitizer, fuzzing and simulation. The first exception of a rank is thrown again
/// here, after the other ranks have been told of its death. `settings` are NAME=VALUE pairs that hold for this job
/// only.
void run_as_threads(int ranks, const std::function<void(Job&)>& body, const std::vector<std::string>& settings = {});

}  // namespace tonari
