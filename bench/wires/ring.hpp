#pragma once

#include "harness/placement.hpp"

#include "base/clock.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>

namespace tonari::bench {

/// The lower bound of a short message: two processes and one ring of 64-byte heads in each direction. No matching, no
/// tags, no flow control (a ping-pong has one message in flight), no progress, no other transport.
///
///   0         8                    16                                    64
///   +---------+--------------------+-------------------------------------+
///   | publish | unused             | payload                             |
///   +---------+--------------------+-------------------------------------+
/// publish is the number of the message in the line, from 1. It is written last.
class RingWire {
 public:
  static constexpr std::size_t payload_bytes_max = 48;
  static constexpr std::size_t slots = 1024;

  /// Becomes two processes, ranks 0 and 1, each bound to a processor of its own if `bind` and there are two.
  explicit RingWire(bool bind) {
    auto* memory = ::mmap(nullptr, 2 * sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("ring: no memory for two rings");
    auto* rings = static_cast<Ring*>(memory);
    const auto parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("ring: cannot fork");
    rank_ = child_ == 0 ? 1 : 0;
    if (child_ == 0) {  // the child dies with its parent; it would spin forever
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
    } else {
      std::signal(SIGCHLD, [](int) {
        int status = 0;
        if (::waitpid(-1, &status, WNOHANG) > 0 && status != 0) ::_exit(1);
      });
    }
    in_ = &rings[rank_];
    out_ = &rings[1 - rank_];
    if (bind) bind_to_processor(rank_);
  }
  RingWire(RingWire&&) = delete;
  ~RingWire() {
    if (child_ <= 0) return;
    if (std::uncaught_exceptions() != 0) {  // the child would wait for this process
      std::signal(SIGCHLD, SIG_DFL);
      ::kill(child_, SIGKILL);
    }
    ::waitpid(child_, nullptr, 0);
  }

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return 2; }
  std::string system() const { return "ring"; }

  void send(std::span<const std::byte> bytes, int, int) {
    if (bytes.size() > payload_bytes_max) throw std::invalid_argument("ring: a head has room for 48 bytes");
    Line& line = out_->lines[sent_ % slots];
    std::memcpy(line.payload.data(), bytes.data(), bytes.size());
    line.publish.store(++sent_, std::memory_order_release);  // (1) payload before number: pairs with (2)
  }

  void receive(std::span<std::byte> bytes, int, int) noexcept {
    Line& line = in_->lines[received_ % slots];
    ++received_;
    while (line.publish.load(std::memory_order_acquire) != received_) cpu_relax();  // (2)
    std::memcpy(bytes.data(), line.payload.data(), bytes.size());
  }

 private:
  struct alignas(64) Line {
    std::atomic<std::uint64_t> publish;
    std::uint64_t unused;
    std::array<std::byte, payload_bytes_max> payload;
  };
  static_assert(sizeof(Line) == 64);
  struct Ring {
    std::array<Line, slots> lines;
  };

  pid_t child_ = 0;
  int rank_ = 0;
  Ring* in_;
  Ring* out_;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace tonari::bench
