#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tonari::fabric::ucx {

/// Closes TCP connections on which data have been sent and nothing has been received for longer than their keepalive
/// allows.
///
/// The kernel's keepalive probes a connection only while no data are under way. Data under way are sent again for a
/// quarter of an hour (net.ipv4.tcp_retries2) before the kernel reports that the host is gone. TCP_USER_TIMEOUT would
/// be faster, but it would also close the connection of a peer that is alive and does not read, because it computes or
/// is stopped by a debugger. The kernel of such a peer still acknowledges. So this class looks at the time at which the
/// kernel last received anything.
///
/// The limit is the time of a keepalive: idle time + probes x interval. These are set here too, since UCX 1.13 sets
/// them, rounded, on the connections that it makes and not on the connections that it accepts. UCX finds a connection
/// that is closed here broken, as if its peer had died.
///
/// Threads: one at a time, while UCX makes no progress, since UCX might close a connection that is being looked at.
/// Costs:   a look reads /proc and makes three system calls per connection, at most once a second.
class Keepalive {
 public:
  struct Times {
    int idle_s;
    int count;
    int interval_s;
  };

  /// `descriptor`: UCX's epoll descriptor, which leads to all its connections. Without `times`, hosts may be silent
  /// forever.
  Keepalive(int descriptor, std::optional<Times> times) noexcept : descriptor_(descriptor), times_(times) {}

  /// Looks at all connections, at most once a second. Call it often, with the present time.
  void look(std::uint64_t now_ns) {
    if (now_ns - looked_ns_ < between_looks_ns) [[likely]]
      return;
    looked_ns_ = now_ns;
    end_silent(now_ns);
  }

 private:
  static constexpr std::uint64_t between_looks_ns = 1'000'000'000;

  struct Connection {
    int number;
    ino_t file;
    std::uint64_t heard_ns;  // when something was last received, or no data were under way
  };

  void end_silent(std::uint64_t now_ns);
  /// Returns `heard_ns` of the last look; nothing for a new connection.
  [[nodiscard]] std::optional<std::uint64_t> heard_before(int number, ino_t file) const noexcept;

  int descriptor_;
  std::optional<Times> times_;
  std::uint64_t looked_ns_ = 0;
  std::vector<Connection> connections_;  // as the last look found them
};

}  // namespace tonari::fabric::ucx
