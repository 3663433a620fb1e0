#include "fabric/network.hpp"

#include "base/log.hpp"
#include "fabric/engine.hpp"
#include "fabric/segment.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>

#include <memory>

namespace tonari::fabric {

namespace {

// Heads per peer. Replies: 1.25 times all that a rank may reserve (ordered.hpp).
constexpr Ordered<ucx::Wire>::Windows windows{.requests = 128, .replies = 1024};
static_assert(windows.replies >= tickets_max * replies_per_ticket * 5 / 4);
constexpr std::size_t credits_max = 5;  // under way from one peer: ordered.hpp

// The wire names a tail by its place in bulk memory or, with this bit, by the address of the counter that send_from()
// raised. No address has the bit.
constexpr std::uint64_t counted = std::uint64_t{1} << 63;

void tail_sent(void* owner, std::uint64_t place) noexcept {
  if ((place & counted) == 0) return BulkReader::give_back(*static_cast<BulkMemory*>(owner), {place});
  auto& under_way = *reinterpret_cast<std::atomic<std::uint32_t>*>(place & ~counted);
  under_way.fetch_sub(1, std::memory_order_release);  // the network has read the bytes
}

ucx::Wire::Settings wire_settings(const job::Membership& member, const Settings& settings, BulkMemory& bulk) {
  ucx::Wire::Settings wire{};
  wire.network = settings.network;
  wire.secret = member.secret;
  wire.ranks = member.size;
  wire.self = member.rank;
  wire.requests = windows.requests;
  wire.replies = windows.replies + credits_max;
  wire.owner = &bulk;
  wire.tail_sent = tail_sent;
  if (settings.direct_copies) wire.staging = {reinterpret_cast<std::byte*>(&bulk), bulk_memory_bytes};
  return wire;
}

}  // namespace

Network::Network(const job::Membership& member, const Settings& settings)
    : bulk_(Segment(member.arena->segment(member.rank)).bulk()),
      wire_(wire_settings(member, settings, bulk_)),
      ordered_(wire_, member.size, member.rank, windows),
      hosts_(member.hosts),
      host_names_(member.host_names),
      log_(make_logger(member.rank, settings.log)) {}

std::size_t Network::bytes_per_peer() noexcept {
  return Ordered<ucx::Wire>::bytes_per_peer(windows) +
         ucx::Wire::bytes_per_peer(windows.requests, windows.replies + credits_max);
}

std::optional<job::Loss> Network::loss(int rank) const noexcept {
  const std::string_view reason = wire_.reason(rank);
  if (reason.empty()) return std::nullopt;
  return job::Loss{.reason = reason, .was_reached = wire_.was_reached(rank)};
}

// Called at once, since the program may end on the status of its first send. Warns of one peer only: if there are more,
// they usually have the same cause.
void Network::say_if_out_of_reach(int peer) noexcept {
  if (said_.load(std::memory_order_relaxed)) return;
  const auto lost = loss(peer);
  if (!lost || lost->was_reached || said_.exchange(true, std::memory_order_relaxed)) return;
  log_->warn(
      "rank {}{} cannot be reached ({}) and counts as dead: unless it has ended, a link is down, a firewall blocks "
      "the connection, or the hosts use interfaces without a route to each other; TONARI_UCX_NET_DEVICES chooses them, "
      "`ucx_info -d` lists the interfaces of a host",
      peer, host_of(peer), lost->reason);
}

std::string Network::host_of(int rank) const {
  if (hosts_.empty()) return {};
  return fmt::format(" (host {})", host_names_[static_cast<std::size_t>(hosts_[static_cast<std::size_t>(rank)])]);
}

Status Network::send_with_tail(int peer, const Head& head, Lane lane) noexcept {
  const auto tail = head.as<Tail>();
  const BulkPlace place{tail.place};
  const std::span<const std::byte> bytes(bulk_.block(place.size_class(), place.index()), tail.bytes);
  return ordered_.send(peer, head, lane, ucx::Wire::Outgoing{bytes, place.value});
}

Status Network::send_from(int peer, const Head& head, std::span<const std::byte> bytes,
                          std::atomic<std::uint32_t>& under_way) noexcept {
  under_way.fetch_add(1, std::memory_order_relaxed);
  const auto place = counted | reinterpret_cast<std::uint64_t>(&under_way);
  const Status status = ordered_.send(peer, head, Lane::request, ucx::Wire::Outgoing{bytes, place});
  if (status != Status::ok) under_way.fetch_sub(1, std::memory_order_relaxed);  // as send_with_tail's place
  if (status == Status::peer_gone) say_if_out_of_reach(peer);
  return status;
}

}  // namespace tonari::fabric

namespace tonari::job {

std::unique_ptr<Network> make_network(const Membership& member, const Settings& settings) {
  return std::make_unique<fabric::Network>(member, settings);
}

void attach_fabric(Session& session) { fabric::Engine::of(session); }

}  // namespace tonari::job
