#pragma once

#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tonari {

/// What a rank has done since it joined. Counts start at zero and never fall.
struct Statistics {
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_sent = 0;      ///< Payload of the messages sent.
  std::uint64_t bytes_direct = 0;    ///< Received straight into the user's buffer.
  std::uint64_t bytes_buffered = 0;  ///< Received through a head, bulk memory or a kept copy.
  std::uint64_t posted_now = 0;      ///< Receives that wait for a message.
  std::uint64_t posted_max = 0;
  std::uint64_t unexpected_now = 0;  ///< Messages that wait for a receive.
  std::uint64_t unexpected_max = 0;
  std::uint64_t unexpected_bytes_now = 0;  ///< Memory those messages hold here.
  std::uint64_t unexpected_bytes_max = 0;
  std::uint64_t held_back = 0;  ///< Sends that found no room and had to wait.
  std::uint64_t sleeps = 0;     ///< Times a waiting thread gave up its core.
  std::uint64_t wake_ups = 0;   ///< Sleeping ranks this rank woke.
};

/// How a rank ended. Exactly one of `signal` and `exit_status` says why.
struct Death {
  int rank = -1;
  std::string host;
  int signal = 0;       ///< The signal that killed it, or 0.
  int exit_status = 0;  ///< Otherwise its exit status: it left without destroying its Job. -1: hidden by a wrapper.
};

/// A set of ranks of a job, in an order: position i holds the job's rank `at(i)`.
class Group {
 public:
  Group() = default;
  /// Ranks of the job, each at most once. Throws std::invalid_argument on a repeated or negative rank.
  explicit Group(std::vector<int> ranks);
  /// Ranks 0 to `size` - 1.
  static Group first(int size);

  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  /// The job's rank at `position`, which must be in [0, size).
  [[nodiscard]] int at(int position) const noexcept { return ranks_[static_cast<std::size_t>(position)]; }
  /// Position of a rank of the job, or -1. Costs one array access.
  [[nodiscard]] int position(int job_rank) const noexcept {
    const auto index = static_cast<std::size_t>(job_rank);
    return index < positions_.size() ? positions_[index] : -1;
  }
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  std::vector<int> ranks_;
  std::vector<int> positions_;  // by rank of the job: position here, or -1
};

namespace job {
class Session;
}

/// A process's membership in a job: N ranks, 0 to N - 1, on hosts.
///
/// Joining finds out by itself how the program was started: by `tonari run`, by a launcher that has PMIx (mpirun,
/// prterun, srun --mpi=pmix), or alone (a job of one). Owns:    the mapping of the host's arena, one service thread,
/// and whatever the layers above attach. Threads: any thread may call anything; construction and destruction happen
/// once each. Leaving: the destructor waits until every rank leaves; what others still wait for from this one answers
/// peer_gone,
///          half a second later. A rank whose Job is destroyed by an exception in flight, or
///          that exits without destroying it, counts as dead, and the other ranks stop (see on_death).
/// Fork:    a forked child must not use the parent's Job; destroying it there does nothing.
class Job {
 public:
  /// Joins. Throws SetupError, which says what failed and what to do.
  Job();
  /// Joins through a session made by `run_as_threads`; tests use it.
  explicit Job(std::unique_ptr<job::Session> session);
  Job(Job&&) = delete;
  ~Job();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// Number of the host that a rank is on, from 0. With TONARI_APART every rank is a host of its own,
  /// or as many as TONARI_APART_RANKS says.
  [[nodiscard]] int host(int rank) const noexcept;
  [[nodiscard]] int hosts() const noexcept;
  [[nodiscard]] const std::string& host_name() const noexcept;

  /// Counters of this rank, read without stopping anything: each is exact, their sum may be a moment apart.
  [[nodiscard]] Statistics statistics() const noexcept;

  /// From now on a death does not end this process: `handler` runs on the service thread, once for each rank that
  /// dies, and operations that need a dead rank answer Status::peer_gone. Without a handler the process exits.
  void on_death(std::function<void(const Death&)> handler);
  [[nodiscard]] bool alive(int rank) const noexcept;

  /// For the layers of tonari: the session behind this job.
  [[nodiscard]] job::Session& session() noexcept { return *session_; }

 private:
  std::unique_ptr<job::Session> session_;
};

/// Runs `body` as ranks 0 to `ranks` - 1 of a job of threads in this process, and waits for all of them: the fabric's
/// test mode, for ThreadSanitizer, fuzzing and simulation. The first exception of a rank is thrown again here, after
/// the others have been told of its death. `settings` are NAME=VALUE pairs that hold for this job only.
void run_as_threads(int ranks, const std::function<void(Job&)>& body, const std::vector<std::string>& settings = {});

}  // namespace tonari
