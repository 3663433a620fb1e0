#include "job/observer.hpp"

#include "base/error.hpp"
#include "job/handshake.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <new>
#include <set>
#include <string_view>

namespace tonari::job {

namespace {

constexpr int answer_seconds = 5;

// Returns the value of TONARI_JOIN that a process was started with; empty if it had none.
std::string join_name_of(pid_t process) {
  std::ifstream file{fmt::format("/proc/{}/environ", process)};
  constexpr std::string_view name = "TONARI_JOIN=";
  for (std::string pair; std::getline(file, pair, '\0');) {
    if (pair.starts_with(name)) return pair.substr(name.size());
  }
  return {};
}

// True if the process belongs to another user. Root can read every process, except isolated ones, which are not in a
// job of ours.
bool is_of_another(pid_t process) noexcept {
  struct stat status;
  return ::geteuid() != 0 && ::stat(fmt::format("/proc/{}", process).c_str(), &status) == 0 &&
         status.st_uid != ::geteuid();
}

FileDescriptor connect_to_job_of(pid_t process) {
  if (process <= 0 || (::kill(process, 0) != 0 && errno == ESRCH)) {
    throw SetupError(fmt::format("there is no process {}", process));
  }
  if (FileDescriptor run = try_connect(join_name(process))) return run;
  const std::string name = join_name_of(process);
  if (name.empty() && is_of_another(process)) {
    throw SetupError(
        fmt::format("process {} belongs to another user: only its own user can query its status", process));
  }
  if (name.empty()) {
    throw SetupError(
        fmt::format("process {} is neither a `tonari run` nor one of its ranks: give the process id of one, `tonari "
                    "status` lists them; programs started without `tonari run` have no status",
                    process));
  }
  FileDescriptor connection = try_connect(name);
  if (!connection) {
    throw SetupError(fmt::format(
        "process {} was started by the `tonari run` at @{}, which has ended or is in another network namespace",
        process, name));
  }
  return connection;
}

}  // namespace

std::vector<pid_t> running_jobs() {
  const std::string prefix = "@tonari-run-";  // the name of join_name(); /proc shows the leading zero byte as @
  std::set<pid_t> starters;                   // a set, because each connection is listed with the name too
  std::ifstream sockets{"/proc/net/unix"};
  for (std::string line; std::getline(sockets, line);) {
    const auto at = line.rfind(' ') + 1;  // 0 if the line has no name
    if (line.compare(at, prefix.size(), prefix) != 0) continue;
    const pid_t starter = std::atoi(line.c_str() + at + prefix.size());
    if (starter > 0) starters.insert(starter);
  }
  return {starters.begin(), starters.end()};
}

Observer::Observer(pid_t process) {
  const FileDescriptor connection = connect_to_job_of(process);
  const Peer starter = peer_of(connection);
  if (starter.user != ::geteuid()) {
    throw SetupError(fmt::format(
        "the job of process {} belongs to user {}, and you are user {}: only its own user can query its status",
        process, starter.user, ::geteuid()));
  }
  const timeval limit{.tv_sec = answer_seconds, .tv_usec = 0};
  ::setsockopt(connection.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const Request look{.step = Step::look};
  send_message(connection, &look, sizeof look);

  Reply reply;
  FileDescriptor memory;
  const auto received = receive_message(connection, &reply, sizeof reply, true, &memory);
  if (received < 0 && errno == EAGAIN) {
    throw SetupError(fmt::format("`tonari run` (process {}) has not replied for {} s: check whether it is stopped",
                                 starter.pid, answer_seconds));
  }
  if (received == sizeof reply && reply.step == Step::refused) throw SetupError(reply.text.data());
  if (received != sizeof reply || reply.version != handshake_version || reply.step != Step::welcome || !memory) {
    throw SetupError(fmt::format(
        "`tonari run` (process {}) does not use version {} of the handshake: use the tonari command that started it",
        starter.pid, handshake_version));
  }
  starter_ = starter.pid;
  map(memory, static_cast<std::size_t>(reply.ranks));
}

void Observer::map(const FileDescriptor& memory, std::size_t ranks) {
  const auto bytes = Arena::blocks_bytes(ranks);
  void* const start = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, memory.number(), 0);
  if (start == MAP_FAILED) throw_system_error(fmt::format("mmap of {} bytes of the job's arena", bytes));
  blocks_ = {static_cast<std::byte*>(start), Unmap{bytes}};
  if (header().version != arena_version || header().ranks != ranks) {
    throw SetupError(
        fmt::format("the job's arena has version {}, this command reads version {}: use the tonari command "
                    "that started it",
                    header().version, arena_version));
  }
}

const ArenaHeader& Observer::header() const noexcept {
  return *std::launder(reinterpret_cast<const ArenaHeader*>(blocks_.get()));
}

const RankBlock& Observer::block(int rank) const noexcept {
  const std::byte* const start = blocks_.get() + Arena::blocks_bytes(static_cast<std::size_t>(rank));
  return *std::launder(reinterpret_cast<const RankBlock*>(start));
}

void Observer::Unmap::operator()(std::byte* start) const noexcept { ::munmap(start, bytes); }

}  // namespace tonari::job
