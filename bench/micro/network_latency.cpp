// Question: how long does a head take over TCP, and what does our layer add to UCX?
// Method:   ping-pong of two processes on this host, over the loopback device, each bound to a processor: half the
// round
//           trip, on average over a run; a first tenth is dropped. Our head has 72 bytes on the wire and 8 of the
//           program's; ucx_perftest's ucp_am_lat is asked for 8 bytes. The two take turns.
// Output:   CSV round, tonari_us, ucx_us; then the medians and their ratio.

#include "fabric/ordered.hpp"
#include "fabric/ucx/wire.hpp"
#include "wires/ucx_perftest.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace tonari::bench {

constexpr fabric::Ordered<fabric::ucx::Wire>::Windows windows{.requests = 64, .replies = 64};
constexpr std::size_t credits_max = 5;
constexpr std::size_t address_bytes_max = 4096;
constexpr std::array<std::byte, 32> secret{};  // nobody is kept out of a measurement

/// One of the two ranks.
class Player {
 public:
  /// `other`: a socket to it, for addresses.
  Player(int self, int other) : self_(self), wire_(settings(self)), ordered_(wire_, 2, self, windows) {
    std::vector<std::byte> address(address_bytes_max);
    const auto ours = wire_.address();
    if (::send(other, ours.data(), ours.size(), 0) < 0) ucx::throw_system_error("send");
    const auto bytes = ::recv(other, address.data(), address.size(), 0);
    if (bytes <= 0) ucx::throw_system_error("recv");
    address.resize(static_cast<std::size_t>(bytes));
    wire_.introduce(1 - self, std::move(address));
  }

  /// Microseconds from one to the other, for each round.
  std::vector<double> run(std::size_t rounds) {
    std::vector<double> latencies_us(rounds);
    auto begin = std::chrono::steady_clock::now();
    for (double& latency_us : latencies_us) {
      if (self_ == 0) send();
      receive();
      if (self_ == 1) send();
      const auto end = std::chrono::steady_clock::now();
      latency_us = std::chrono::duration<double, std::micro>(end - begin).count() / 2;
      begin = end;
    }
    return latencies_us;
  }

 private:
  static fabric::ucx::Wire::Settings settings(int self) {
    return {.network = "tcp",
            .devices = "lo",
            .secret = secret,
            .ranks = 2,
            .self = self,
            .requests = windows.requests,
            .replies = windows.replies + credits_max};
  }
  void send() {
    fabric::Head head{};
    head.kind = fabric::HeadKind{1};
    head.inline_bytes = sizeof sent_;
    head.source = static_cast<std::uint32_t>(self_);
    head.set(sent_++);
    while (ordered_.send(1 - self_, head, fabric::Lane::request) != Status::ok) poll();
  }
  void receive() {
    const std::uint64_t awaited = received_ + 1;
    while (received_ != awaited) poll();
  }
  void poll() {
    ordered_.poll(16, [this](const fabric::Head&) noexcept { ++received_; });
    if (wire_.gone_count() != 0) throw std::runtime_error("the other rank died");
  }

  int self_;
  fabric::ucx::Wire wire_;
  fabric::Ordered<fabric::ucx::Wire> ordered_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double play(int self, int other, std::size_t rounds) {
  bind_to_processor(self);
  Player player(self, other);
  player.run(rounds / 10);
  const double latency_us = median(player.run(rounds));
  char done = 0;  // neither leaves while the other plays
  static_cast<void>(!::send(other, &done, 1, 0));
  static_cast<void>(!::recv(other, &done, 1, 0));
  return latency_us;
}

double run_ours(std::size_t rounds) {
  int ends[2];
  int result[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 || ::pipe(result) != 0) ucx::throw_system_error("socketpair");
  pid_t players[2];
  for (const int self : {0, 1}) {
    players[self] = ::fork();
    if (players[self] != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const double latency_us = play(self, ends[self], rounds);
    if (self == 0) static_cast<void>(!::write(result[1], &latency_us, sizeof latency_us));
    ::_exit(0);
  }
  ::close(result[1]);
  double latency_us = 0;
  const bool told = ::read(result[0], &latency_us, sizeof latency_us) == sizeof latency_us;
  for (const pid_t player : players) ::waitpid(player, nullptr, 0);
  for (const int end : {ends[0], ends[1], result[0]}) ::close(end);
  if (!told) throw std::runtime_error("a rank failed");
  return latency_us;
}

void run(const Options& options) {
  const auto rounds = static_cast<std::size_t>(options.number("rounds", 50'000));
  const auto turns = static_cast<int>(options.number("turns", 9));
  std::vector<double> ours;
  std::vector<double> theirs;
  std::puts("round,tonari_us,ucx_us");
  for (int turn = 0; turn < turns; ++turn) {
    ours.push_back(run_ours(rounds));
    theirs.push_back(
        ucx::run_perftest({"-t", "ucp_am_lat", "-s", "8"}, static_cast<double>(rounds), true, "tcp").latency_median_us);
    std::printf("%d,%.3f,%.3f\n", turn, ours.back(), theirs.back());
  }
  std::printf("median,%.3f,%.3f\nratio,%.3f\n", median(ours), median(theirs), median(ours) / median(theirs));
}

}  // namespace tonari::bench

int main(int argc, char** argv) {
  using namespace tonari::bench;
  try {
    ::setenv("UCX_NET_DEVICES", "lo", 1);
    run(Options(argc, argv, 1));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
