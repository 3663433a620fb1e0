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

/// A failure of a rank or of joining, as reported to the user and to the code that runs the server.
struct Failure {
  int rank = -1;        ///< The rank that ended; -1: no rank ended, but some did not join.
  std::string text;     ///< One line, without the program's name in front and without a newline.
  bool stops = true;    ///< The other ranks must end. False if each of them has a death handler or has ended already.
  bool aborts = false;  ///< The rank has ended the whole job by Job::abort(), also ranks with a death handler.
  int exit_status =
      1;  ///< Exit status of the failed process, in the convention of shells. Never 0. Not exact if a wrapper hides it.
};

/// The server's side of `tonari run`: makes the job's arena, admits the ranks to it, and watches them until they have
/// left. docs/modules/job.md draws the sequence.
///
/// Owns:    the arena; a socket in the abstract namespace; a connection and a process descriptor for each rank.
/// Threads: one. No function blocks: wait until descriptor() is readable, then call step().
/// Costs:   two descriptors per rank that has joined.
class JobServer {
 public:
  /// Throws SetupError. At most one at a time in a process, because the socket is named after the process.
  JobServer(int ranks, const Settings& settings);
  ~JobServer();
  JobServer(JobServer&&) = delete;

  /// Returns the NAME=VALUE pairs that a rank needs to find this server, beside TONARI_RANK and TONARI_SIZE.
  [[nodiscard]] std::vector<std::string> environment() const;
  /// Descriptor that is readable when step() has something to do.
  [[nodiscard]] int descriptor() const noexcept { return events_.number(); }
  void step();
  /// Reports that a rank's program (or the wrapper that it was started in) has ended. The caller must report each.
  void program_ended(int rank, pid_t process, const Ending& ending);

  /// Returns the oldest failure not returned yet; empty if there is none.
  std::optional<Failure> next_failure();
  /// True while the process that joined as this rank runs. It may be a descendant of the program that was started.
  [[nodiscard]] bool runs(int rank) const noexcept { return door(rank).state != State::away && !door(rank).ended; }
  /// Returns the process that joined as this rank, or 0.
  [[nodiscard]] pid_t process(int rank) const noexcept { return door(rank).pid; }
  [[nodiscard]] bool joined(int rank) const noexcept { return door(rank).state != State::away; }
  [[nodiscard]] bool lives_on(int rank) const noexcept;
  /// Returns a text such as "rank 2 (pid 123, host NAME)".
  [[nodiscard]] std::string name_of(int rank, pid_t process) const;
  void send_signal(int rank, int signal) const noexcept { job::send_signal(door(rank).process, signal); }
  [[nodiscard]] const Arena& arena() const noexcept { return arena_; }

 private:
  enum class State : std::uint8_t { away, admitted, tested };
  enum class Watched : std::uint32_t { listener, limit, stranger, rank, process };

  struct Door {
    State state = State::away;
    bool ended = false;     // the process that joined has ended
    bool reported = false;  // its failure, if any, has been reported
    bool copies = false;
    pid_t pid = 0;
    FileDescriptor connection;
    FileDescriptor process;
    std::optional<Ending> program;  // how the program that was started for this rank ended
    pid_t program_pid = 0;
  };

  struct Others {
    int stopped = 0;    // ranks that the failure stops
    int living_on = 0;  // ranks with a death handler, which continue
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

  // job_server_failures.cpp
  void look_for_the_missing();
  void limit_passed();
  void stop_joining(int rank, std::string text, const Ending& ending);
  void process_ended(int rank);
  void report_abort();
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
  FileDescriptor arena_to_look_at_;  // the same memory, opened for reading only
  FileDescriptor events_;
  FileDescriptor listener_;
  FileDescriptor limit_;                     // a timer: fires when joining has taken too long
  std::map<int, FileDescriptor> strangers_;  // connections that have not sent a message yet, by descriptor
  std::vector<Door> doors_;
  int admitted_ = 0;
  int tested_ = 0;
  bool open_ = false;     // `go` was sent
  bool stopped_ = false;  // joining failed
  bool aborted_ = false;  // the call of Job::abort() was reported
  std::deque<Failure> failures_;
};

}  // namespace tonari::job
