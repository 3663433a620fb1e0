#pragma once

#include "base/file_descriptor.hpp"
#include "base/settings.hpp"
#include "job/arena.hpp"
#include "job/ending.hpp"
#include "job/handshake.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::job {

/// Something that went wrong with a rank, for people and for whoever started the job.
struct Failure {
  int rank = -1;        ///< Whose end it was; -1: nobody's, ranks failed to come.
  std::string text;     ///< One line, without a name in front or a newline behind.
  bool stops = true;    ///< The other ranks must end. False when each of them lives on, or is gone already.
  int exit_status = 1;  ///< Of the process that failed, as shells count; what it ran under may hide it. Never 0.
};

/// Who makes a job's arena, admits its ranks to it, and watches them until they have left: the server's side of
/// `tonari run`. docs/modules/job.md draws the sequence.
///
/// Owns:    the arena; a socket in the abstract namespace; a connection and a process descriptor for each rank.
/// Threads: one. Nothing here blocks: wait until descriptor() is readable, then call step().
/// Costs:   two descriptors a rank, none for ranks that never join.
class JobServer {
 public:
  /// Throws SetupError. One in a process at a time: the socket is named after the process.
  JobServer(int ranks, const Settings& settings);
  ~JobServer();
  JobServer(JobServer&&) = delete;

  /// NAME=VALUE pairs that a rank needs to find us, beside TONARI_RANK and TONARI_SIZE.
  [[nodiscard]] std::vector<std::string> environment() const;
  /// Readable when there is something to do.
  [[nodiscard]] int descriptor() const noexcept { return events_.number(); }
  void step();
  /// To be told of each rank's program (or what it is wrapped in), once it has ended.
  void program_ended(int rank, pid_t process, const Ending& ending);

  /// What has gone wrong since the last call, oldest first; empty when nothing has.
  std::optional<Failure> next_failure();
  /// True while a process that joined as this rank runs, which may be another one than its program.
  [[nodiscard]] bool runs(int rank) const noexcept { return door(rank).state != State::away && !door(rank).ended; }
  /// The process that joined as this rank, or 0.
  [[nodiscard]] pid_t process(int rank) const noexcept { return door(rank).pid; }
  [[nodiscard]] bool joined(int rank) const noexcept { return door(rank).state != State::away; }
  [[nodiscard]] bool lives_on(int rank) const noexcept;
  /// "rank 2 (pid 123, host NAME)".
  [[nodiscard]] std::string name_of(int rank, pid_t process) const;
  void send_signal(int rank, int signal) const noexcept { job::send_signal(door(rank).process, signal); }
  [[nodiscard]] const Arena& arena() const noexcept { return arena_; }

 private:
  enum class State : std::uint8_t { away, admitted, tested };
  enum class Watched : std::uint32_t { listener, limit, stranger, rank, process };

  struct Door {
    State state = State::away;
    bool ended = false;     // the process that joined
    bool reported = false;  // its failure, if any
    bool copies = false;
    pid_t pid = 0;
    FileDescriptor connection;
    FileDescriptor process;
    std::optional<Ending> program;  // the ending of what was started for this rank
    pid_t program_pid = 0;
  };

  struct Others {
    int stopped = 0;    // ranks that a failure ends
    int living_on = 0;  // ranks that it does not
  };

  [[nodiscard]] Door& door(int rank) noexcept { return doors_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Door& door(int rank) const noexcept { return doors_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool is_complete() const noexcept { return admitted_ == ranks_; }
  [[nodiscard]] bool is_joining() const noexcept { return admitted_ > 0 && !open_ && !stopped_; }

  void watch(const FileDescriptor& what, Watched kind, int index);
  void handle(Watched kind, int index);
  void accept_all();
  void hear_stranger(int number);
  void answer(const Request& request, FileDescriptor connection);
  std::string objection(const Request& request, const Peer& peer) const;
  void admit(const Request& request, const Peer& peer, FileDescriptor connection);
  void show_arena(const FileDescriptor& connection) const;
  void hear_rank(int rank);
  void send_to_all(const Reply& reply) noexcept;
  void start_if_complete();
  void go_if_tested();

  // gatekeeper_failures.cpp
  void look_for_the_missing();
  void limit_passed();
  void stop_joining(int rank, std::string text, const Ending& ending);
  void process_ended(int rank);
  void report_marked_deaths();
  void report(int rank, std::string text, const Ending& ending, Others others);
  [[nodiscard]] Others others_than(int rank) const noexcept;
  [[nodiscard]] Reply reply(Step step) const noexcept;

  int ranks_;
  std::uint64_t join_seconds_;
  std::string host_name_;
  HostIdentity identity_;
  std::string name_;    // of the socket
  std::string secret_;  // digits
  Arena arena_;
  FileDescriptor arena_to_look_at_;  // the same memory, open for reading only
  FileDescriptor events_;
  FileDescriptor listener_;
  FileDescriptor limit_;                     // a timer: when joining has taken too long
  std::map<int, FileDescriptor> strangers_;  // connected, and silent so far; by number
  std::vector<Door> doors_;
  int admitted_ = 0;
  int tested_ = 0;
  bool open_ = false;     // go was sent
  bool stopped_ = false;  // joining failed
  std::deque<Failure> failures_;
};

}  // namespace tonari::job
