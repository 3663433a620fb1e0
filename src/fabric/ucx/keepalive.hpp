#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tonari::fabric::ucx {

/// Ends TCP connections over which something was sent, and nothing was heard for as long as their keepalive allows.
///
/// The kernel's keepalive asks only where nothing is under way. What is under way it sends again for a quarter of an
/// hour (net.ipv4.tcp_retries2), and until then nobody knows that the host is gone. TCP_USER_TIMEOUT would end that
/// earlier, but also the connection of a peer that lives and does not read, since it computes or a debugger holds it.
/// Such a peer's kernel answers; so what counts here is when the kernel last heard anything.
///
/// How long is what a keepalive takes: idle time + probes x interval. It is set here too: UCX sets it, rounded, on the
/// connections that it makes, but not on those that it accepts (1.13). UCX finds a connection that is ended here
/// broken, as when its peer has died.
///
/// Threads: one at a time, while UCX makes no progress: it might close a connection that is looked at.
/// Costs:   a look reads /proc and asks the kernel three things of each connection; there is one a second at most.
class Keepalive {
 public:
  struct Times {
    int idle_s;
    int count;
    int interval_s;
  };

  /// `descriptor`: UCX's, under which all its connections are to be found. Without `times`, hosts may be silent for
  /// ever.
  Keepalive(int descriptor, std::optional<Times> times) noexcept : descriptor_(descriptor), times_(times) {}

  /// To be called often, with the time.
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
    std::uint64_t heard_ns;  // or there was nothing to be heard
  };

  void end_silent(std::uint64_t now_ns);
  /// Of the last look; nothing if it was not there.
  [[nodiscard]] std::optional<std::uint64_t> heard_before(int number, ino_t file) const noexcept;

  int descriptor_;
  std::optional<Times> times_;
  std::uint64_t looked_ns_ = 0;
  std::vector<Connection> connections_;  // of the last look
};

}  // namespace tonari::fabric::ucx
