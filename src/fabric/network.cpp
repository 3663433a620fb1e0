#include "fabric/network.hpp"

#include "fabric/engine.hpp"
#include "fabric/segment.hpp"

#include <memory>

namespace tonari::fabric {

namespace {

// In heads a peer. Replies: all that a rank may reserve, and a quarter (ordered.hpp).
constexpr Ordered<ucx::Wire>::Windows windows{.requests = 128, .replies = 1024};
static_assert(windows.replies >= tickets_max * replies_per_ticket * 5 / 4);
constexpr std::size_t credits_max = 5;  // of a peer under way: ordered.hpp

// What the wire is told of a tail: a place in bulk memory, or with this bit, which no address has, whose counter counts
// it.
constexpr std::uint64_t counted = std::uint64_t{1} << 63;

void tail_sent(void* owner, std::uint64_t place) noexcept {
  if ((place & counted) == 0) return BulkReader::give_back(*static_cast<BulkMemory*>(owner), {place});
  auto& under_way = *reinterpret_cast<std::atomic<std::uint32_t>*>(place & ~counted);
  under_way.fetch_sub(1, std::memory_order_release);  // the bytes were read before
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
      ordered_(wire_, member.size, member.rank, windows) {}

Status Network::send_with_tail(int peer, const Head& head, Lane lane, TailName name) noexcept {
  const BulkPlace place{read_payload(head, name.place)};
  const std::span<const std::byte> bytes(bulk_.block(place.size_class(), place.index()),
                                         read_payload(head, name.bytes));
  return ordered_.send(peer, head, lane, ucx::Wire::Outgoing{bytes, place.value});
}

Status Network::send_from(int peer, const Head& head, std::span<const std::byte> bytes,
                          std::atomic<std::uint32_t>& under_way) noexcept {
  under_way.fetch_add(1, std::memory_order_relaxed);
  const auto place = counted | reinterpret_cast<std::uint64_t>(&under_way);
  const Status status = ordered_.send(peer, head, Lane::request, ucx::Wire::Outgoing{bytes, place});
  if (status != Status::ok) under_way.fetch_sub(1, std::memory_order_relaxed);  // as send_with_tail's place
  return status;
}

}  // namespace tonari::fabric

namespace tonari::job {

std::unique_ptr<Network> make_network(const Membership& member, const Settings& settings) {
  return std::make_unique<fabric::Network>(member, settings);
}

void attach_fabric(Session& session) { fabric::Engine::of(session); }

}  // namespace tonari::job
