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

/// The longest tail from where it lies: with its head it fits into what UCX takes out of a TCP socket at a time, 64
/// KiB, so that it stays whole.
inline constexpr std::size_t remote_piece_bytes_max = 60 * 1024;

/// The transport between hosts: UCX's wire, put in order.
///
/// Tails of heads travel with them. Their sender keeps the bytes in its bulk memory, as within a host, and the block is
/// free again once the network has them; or where the program has them. Their receiver reads them where the wire keeps
/// them.
///
/// Threads: send(), look(), give_back(): any. The rest: one at a time, the same as polls, but for arm().
class Network final : public job::Network {
 public:
  /// Throws SetupError.
  Network(const job::Membership& member, const Settings& settings);

  [[nodiscard]] std::span<const std::byte> address() const noexcept override { return wire_.address(); }
  void introduce(int rank, std::vector<std::byte> address) override { wire_.introduce(rank, std::move(address)); }

  /// As Transport. The tail that a head names lies in this rank's bulk memory.
  Status send(int peer, const Head& head, Lane lane) noexcept {
    const Status status = head.kind.has_tail() ? send_with_tail(peer, head, lane) : ordered_.send(peer, head, lane);
    if (status == Status::peer_gone) [[unlikely]]
      say_if_out_of_reach(peer);
    return status;
  }
  /// As Engine has it.
  Status send_from(int peer, const Head& head, std::span<const std::byte> bytes,
                   std::atomic<std::uint32_t>& under_way) noexcept;
  template <class Handle>
  std::size_t poll(std::size_t heads_max, Handle&& handle) noexcept {
    return ordered_.poll(heads_max, handle);
  }
  /// How often a poll has asked the network, and it had nothing. By the poller.
  [[nodiscard]] std::uint64_t empty_looks() const noexcept { return wire_.empty_looks(); }
  /// The tail of a head that was handed up; and that it is read.
  [[nodiscard]] static std::span<const std::byte> look(std::uint64_t place, std::uint64_t bytes) noexcept {
    return ucx::Wire::look(place, bytes);
  }
  void give_back(std::uint64_t place) noexcept { wire_.give_back(place); }

  /// Copies by key, of which it may have none.
  [[nodiscard]] ucx::Wire& by_key() noexcept { return wire_; }

  /// Nothing is here that a poll would hand up, or send.
  [[nodiscard]] bool quiet() const noexcept { return ordered_.quiet(); }
  /// Before sleeping until the descriptor is readable. False: something came, poll first.
  bool arm() noexcept { return wire_.arm(); }
  [[nodiscard]] int descriptor() const noexcept { return wire_.event_descriptor(); }

  // Deaths, as the wire has them
  [[nodiscard]] std::optional<job::Loss> loss(int rank) const noexcept override;
  /// Warns, once in the life of the process, that a rank which has gone was never there for the network. Any thread.
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
  // For what is said to people
  std::vector<int> hosts_;
  std::vector<std::string> host_names_;
  std::shared_ptr<spdlog::logger> log_;
  std::atomic<bool> said_{false};
};

}  // namespace tonari::fabric
