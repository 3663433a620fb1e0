#include "fabric/ucx/keepalive.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

namespace tonari::fabric::ucx {

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr int nesting_max = 3;          // UCX's worker watches its networks, each network its connections
constexpr unsigned probes_of_room = 3;  // a receiver without room is probed, and a probe may be lost

struct Close {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

/// Returns the descriptors that an epoll descriptor watches; nothing for any other descriptor.
std::vector<int> watched_by(int epoll) {
  std::vector<int> numbers;
  const std::unique_ptr<std::FILE, Close> file(std::fopen(fmt::format("/proc/self/fdinfo/{}", epoll).c_str(), "re"));
  char line[256];
  int number = -1;
  while (file && std::fgets(line, sizeof line, file.get()) != nullptr) {
    if (std::sscanf(line, "tfd: %d", &number) == 1) numbers.push_back(number);
  }
  return numbers;
}

/// Returns the type and inode of a descriptor; nothing if UCX's own thread has closed it. Uses statx, since
/// ThreadSanitizer would report a race with that thread's accept otherwise, where there is none in memory.
std::optional<struct statx> look_at(int number) noexcept {
  struct statx about {};
  if (::statx(number, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO, &about) != 0) return std::nullopt;
  return about;
}

void find_sockets(int descriptor, int nesting, std::vector<int>& sockets) {
  for (const int number : watched_by(descriptor)) {
    const auto about = look_at(number);
    if (!about) continue;
    if (S_ISSOCK(about->stx_mode)) {
      sockets.push_back(number);
    } else if (nesting > 0) {
      find_sockets(number, nesting - 1, sockets);
    }
  }
}

template <class Value>
bool ask(int socket, int level, int option, Value& value) noexcept {
  socklen_t bytes = sizeof value;
  return ::getsockopt(socket, level, option, &value, &bytes) == 0;
}

template <class Value>
void set(int socket, int level, int option, const Value& value) noexcept {
  ::setsockopt(socket, level, option, &value, sizeof value);  // on failure only end_silent() detects silence
}

void keep_alive(int socket, const Keepalive::Times& how) noexcept {
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, how.idle_s);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, how.count);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, how.interval_s);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
}

/// Closes the connection if the descriptor is still the same file: UCX's own thread may have closed it.
void end(int socket, ino_t file) noexcept {
  const auto about = look_at(socket);
  if (!about || about->stx_ino != file) return;
  const linger at_once{.l_onoff = 1, .l_linger = 0};  // the kernel stops sending again
  set(socket, SOL_SOCKET, SO_LINGER, at_once);
  ::shutdown(socket, SHUT_RDWR);
}

}  // namespace

void Keepalive::end_silent(std::uint64_t now_ns) {
  if (!times_) return;
  const auto longest_ns = second_ns * static_cast<std::uint64_t>(times_->idle_s + times_->count * times_->interval_s);
  std::vector<int> sockets;
  find_sockets(descriptor_, nesting_max, sockets);
  std::vector<Connection> found;
  for (const int number : sockets) {
    const auto about = look_at(number);
    tcp_info info{};
    if (!about || !ask(number, IPPROTO_TCP, TCP_INFO, info)) continue;
    const auto before = heard_before(number, about->stx_ino);
    if (!before) keep_alive(number, *times_);
    const bool waits = info.tcpi_unacked != 0 || info.tcpi_probes >= probes_of_room;
    const std::uint64_t ago_ns =
        std::uint64_t{info.tcpi_last_ack_recv} * 1'000'000;  // long, if it has never received any
    const std::uint64_t kernel_ns = now_ns - std::min(now_ns, ago_ns);
    const std::uint64_t heard_ns = waits ? std::max(kernel_ns, before.value_or(now_ns)) : now_ns;
    found.push_back({number, about->stx_ino, heard_ns});
    if (now_ns - heard_ns >= longest_ns) end(number, about->stx_ino);
  }
  connections_ = std::move(found);
}

std::optional<std::uint64_t> Keepalive::heard_before(int number, ino_t file) const noexcept {
  const auto same = [&](const Connection& each) { return each.number == number && each.file == file; };
  const auto before = std::ranges::find_if(connections_, same);
  if (before == connections_.end()) return std::nullopt;
  return before->heard_ns;
}

}  // namespace tonari::fabric::ucx
