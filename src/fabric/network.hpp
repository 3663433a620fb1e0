#pragma once

#include "base/settings.hpp"
#include "fabric/bulk.hpp"
#include "fabric/ordered.hpp"
#include "fabric/transfer.hpp"
#include "fabric/ucx/wire.hpp"
#include "job/network.hpp"

#include <spdlog/fwd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::fabric {

/// The longest tail of send_from(). With its head it fits into the 64 KiB that UCX reads from a TCP socket at a time,
/// so that it is not divided.
inline constexpr std::size_t remote_piece_bytes_max = 60 * 1024;

/// The transport between hosts: UCX's wire, made to keep order.
///
/// A tail travels with its head. The sender has it in its bulk memory, as within a host, and the block is free once the
/// network has the bytes; or it is in the program's memory (send_from()). The receiver reads it where the wire keeps
/// it.
///
/// Threads: send(), look(), give_back(), arm(): any. The rest: one at a time, the thread that polls.
class Network final : public job::Network {
 public:
  /// Throws SetupError.
  Network(const job::Membership& member, const Settings& settings);

  /// Returns the memory that a rank has for each other rank of the job, from the start, without its address and without
  /// the memory of UCX.
  [[nodiscard]] static std::size_t bytes_per_peer() noexcept;

  [[nodiscard]] std::span<const std::byte> address() const noexcept override { return wire_.address(); }
  void introduce(int rank, std::vector<std::byte> address) override { wire_.introduce(rank, std::move(address)); }

  /// See Transport. The head's tail must be in this rank's bulk memory.
  Status send(int peer, const Head& head, Lane lane) noexcept {
    const Status status = head.kind.has_tail() ? send_with_tail(peer, head, lane) : ordered_.send(peer, head, lane);
    if (status == Status::peer_gone) [[unlikely]]
      say_if_out_of_reach(peer);
    return status;
  }
  /// See Engine::send_from().
  Status send_from(int peer, const Head& head, std::span<const std::byte> bytes,
                   std::atomic<std::uint32_t>& under_way) noexcept;
  template <class Handle>
  std::size_t poll(std::size_t heads_max, Handle&& handle) noexcept {
    return ordered_.poll(heads_max, handle);
  }
  /// Number of polls in which the network had nothing. Called by the poller.
  [[nodiscard]] std::uint64_t empty_looks() const noexcept { return wire_.empty_looks(); }
  /// Returns the tail of a head that was handed up. Give it back after it has been read.
  [[nodiscard]] static std::span<const std::byte> look(std::uint64_t place, std::uint64_t bytes) noexcept {
    return ucx::Wire::look(place, bytes);
  }
  void give_back(std::uint64_t place) noexcept { wire_.give_back(place); }

  /// RDMA copies. Call nothing but has_keys() if that returns false.
  [[nodiscard]] ucx::Wire& by_key() noexcept { return wire_; }

  /// Whether a poll would hand up nothing that is here, and would send nothing.
  [[nodiscard]] bool quiet() const noexcept { return ordered_.quiet(); }
  /// Call before sleeping until the descriptor is readable. Returns false if something has arrived: poll first.
  bool arm() noexcept { return wire_.arm(); }
  [[nodiscard]] int descriptor() const noexcept { return wire_.event_descriptor(); }

  // Deaths; see ucx::Wire.
  [[nodiscard]] std::optional<job::Loss> loss(int rank) const noexcept override;
  /// Warns, once per process, if a rank counts as dead that the network has never reached. Any thread.
  [[gnu::cold]] void say_if_out_of_reach(int peer) noexcept;
  void forget(int peer) noexcept { wire_.forget(peer); }
  [[nodiscard]] bool gone(int peer) const noexcept { return wire_.gone(peer); }
  [[nodiscard]] std::uint32_t gone_count() const noexcept { return wire_.gone_count(); }

 private:
  Status send_with_tail(int peer, const Head& head, Lane lane) noexcept;
  [[nodiscard]] std::string host_of(int rank) const;

  BulkMemory& bulk_;
  ucx::Wire wire_;
  Ordered<ucx::Wire> ordered_;
  // For messages to people:
  std::vector<int> hosts_;
  std::vector<std::string> host_names_;
  std::shared_ptr<spdlog::logger> log_;
  std::atomic<bool> said_{false};
};

}  // namespace tonari::fabric
