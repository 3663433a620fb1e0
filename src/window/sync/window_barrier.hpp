#pragma once

#include "window/state/layout.hpp"
#include "window/state/members.hpp"
#include "window/sync/host_barrier.hpp"

#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>

namespace tonari::window {

/// The barriers of a window. Within a host each rank counts its arrivals in its own line, and waits for the lines of
/// the others; between hosts the leaders meet (host_barrier.hpp).
///
/// Threads: one at a time; take() the holder of the progress lock.
class WindowBarrier {
 public:
  WindowBarrier(fabric::Engine& engine, fabric::SendQueue& send_queue, const Members& members, const Layout& layout,
                std::uint32_t window);

  /// A barrier that this rank has entered, and how far it has seen the others.
  struct Meeting {
    std::uint64_t round = 0;
    std::size_t next = 0;      // the next member of this host to wait for
    std::size_t exchange = 0;  // the next exchange with other hosts
    bool told = false;         // this exchange has begun
    Status status = Status::ok;
  };
  /// Returns ok, or invalid if this window has no barriers.
  Status begin(Meeting& meeting) noexcept;
  /// Returns true when all ranks have come or have gone.
  bool step(Meeting& meeting) noexcept;
  /// Returns true if step() would advance.
  [[nodiscard]] bool ready(const Meeting& meeting) const noexcept;
  /// Waits until all ranks have come. Returns ok; peer_gone if a rank has gone instead; or invalid, as begin().
  Status wait() noexcept;

  /// Takes the message of another host's leader.
  void take(int rank, const Met& met) noexcept { host_barrier_.take(rank, met); }

 private:
  [[nodiscard]] int awaited(const Meeting& meeting) const noexcept;
  bool step_here(Meeting& meeting) const noexcept;
  bool step_between_hosts(Meeting& meeting) noexcept;
  [[nodiscard]] bool released(std::uint64_t round) const noexcept {
    return round_of(layout_.header().released.load(std::memory_order_seq_cst)) >= round;
  }

  fabric::Engine& engine_;
  const Members& members_;
  const Layout& layout_;
  HostBarrier host_barrier_;
  std::uint64_t rounds_ = 0;  // entered by this rank
};

}  // namespace tonari::window
