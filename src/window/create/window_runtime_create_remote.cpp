#include "fabric/wait.hpp"
#include "job/group.hpp"
#include "window/remote/heads.hpp"
#include "window/window_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

// Makes windows that span hosts, and attaches to local windows of other hosts.
namespace tonari::window {

using fabric::Head;

namespace {

Rights rights_for(const WindowOptions& options, int rank) noexcept {
  const auto found = std::ranges::find(options.rights_of, JobRank{rank}, [](const auto& each) { return each.first; });
  return found == options.rights_of.end() ? options.rights : found->second;
}

RemotePart part_of(const Told& told) noexcept {
  return {.bytes = std::min(told.bytes, part_bytes_max),
          .locks = told.locks,
          .notifications = told.notifications,
          .rights = static_cast<Rights>(told.rights & static_cast<std::uint32_t>(Rights::all)),
          .in_program = (told.flags & join_in_program) != 0};
}

}  // namespace

// The numbers of a host are apart by the number of hosts, so that no two hosts use the same number.
std::uint32_t WindowRuntime::number_of_granule(std::uint32_t granule) const {
  const job::Session& session = engine_.session();
  const auto domains = static_cast<std::uint64_t>(session.domains());
  const std::uint64_t number = granule * domains + static_cast<std::uint64_t>(session.domain(session.rank()));
  if (number > std::numeric_limits<std::uint32_t>::max()) {
    throw SetupError(
        "making a window: this host has no window numbers left, and does not reuse them: make fewer windows in one "
        "job");
  }
  return static_cast<std::uint32_t>(number);
}

int WindowRuntime::domain_of(std::uint32_t number) const noexcept {
  return static_cast<int>(number % static_cast<std::uint32_t>(engine_.session().domains()));
}

void WindowRuntime::tell_remote(const Making& making, std::uint32_t number, const Offer& offer, std::uint32_t flags) {
  for (const int rank : making.remote) {
    const Told told{.group = making.name,
                    .bytes = offer.bytes,
                    .sequence = making.sequence,
                    .number = number,
                    .locks = offer.options.locks,
                    .notifications = offer.options.notifications,
                    .rights = static_cast<std::uint32_t>(rights_for(offer.options, rank)),
                    .flags = flags | (offer.in_program ? join_in_program : 0)};
    send(rank, head_of(Kind::window_told, engine_.session().rank(), told));
  }
}

// Returns the heads of all ranks of other hosts; throws if one of them has died or left.
std::vector<Head> WindowRuntime::wait_for_all(const Making& making, Kind kind) {
  if (making.remote.empty()) return {};
  const Rendezvous::Key key{making.name, making.sequence, kind};
  fabric::wait_until(
      engine_, [&] { return rendezvous_.has_all(key, making.remote) || first_gone(making) >= 0; }, job::Wait::window,
      -1);
  std::vector<Head> heads = rendezvous_.take(key, making.remote);
  if (heads.size() < making.remote.size()) throw_if_gone(making);
  return heads;
}

// Returns the window's number at the group's first rank; for ranks of its host that is `number`.
std::uint32_t WindowRuntime::agree(const Making& making, std::uint32_t number, const Offer& offer, RemoteParts& parts) {
  tell_remote(making, number, offer, 0);
  bool refused = false;
  for (const Head& head : wait_for_all(making, Kind::window_told)) {
    const auto told = head.as<Told>();
    const int rank = static_cast<int>(head.source);
    refused = refused || (told.flags & join_refused) != 0;
    if (rank == job::rank_at(making.group, 0)) number = told.number;
    parts.emplace_back(rank, part_of(told));
  }
  if (refused) throw SetupError("making a window: a rank of another host failed: see its error message");
  return number;
}

// Neighbours are told only of failure: success they see in the window's lines.
void WindowRuntime::tell_ready(const Making& making, std::uint32_t flags) {
  const int self = engine_.session().rank();
  const Head head =
      head_of(Kind::window_ready, self, Ready{.group = making.name, .sequence = making.sequence, .flags = flags});
  for (const JobRank member : making.group.ranks()) {
    const int rank = member.value();
    const bool must_know = engine_.is_remote(rank) || (flags & join_refused) != 0;
    if (must_know && rank != self) send(rank, head);
  }
}

void WindowRuntime::wait_for_remote(const Making& making) {
  const auto refused = [](const Head& head) { return (head.as<Ready>().flags & join_refused) != 0; };
  if (std::ranges::any_of(wait_for_all(making, Kind::window_ready), refused)) {
    throw SetupError("making a window: a rank of another host failed: see its error message");
  }
}

// Asks the owner to describe its window. This host has only the lines that every window begins with.
std::shared_ptr<WindowState> WindowRuntime::reach_remote(GlobalAddress address) {
  const job::Session& session = engine_.session();
  const int owner = address.rank.value();
  if (domain_of(address.window) != session.domain(owner)) {
    throw SetupError(fmt::format("reaching window {} of rank {}: that rank has no such window", address.window, owner));
  }
  PendingAccess pending;
  ServiceRequest request{};
  request.service = Service::reach;
  origin_.ask(pending, owner, address.window, request);
  origin_.requests().wait(pending);
  if (pending.outcome() != Status::ok) {
    throw SetupError(fmt::format(
        "reaching window {} of rank {}, which is on another host: {}", address.window, owner,
        pending.outcome() == Status::peer_gone ? "that rank has died" : "there is no such window, or it was freed"));
  }
  const auto reached = std::bit_cast<Reached>(pending.words());
  const auto members = static_cast<std::size_t>(session.size());
  auto memory = std::make_shared<Mapping>(
      Mapping::of_zeros(Layout::fixed_bytes(members), "the first lines of a window of another host"));
  auto& header = *reinterpret_cast<Header*>(memory->bytes().data());
  header.members = static_cast<std::uint32_t>(members);
  header.alone = 1;
  header.holders.store(1, std::memory_order_relaxed);
  auto state = std::make_shared<WindowState>(*this, Group::first(session.size()), Place{memory, address.window, 0},
                                             Offer{.options = {}, .present = false});
  state->tell(owner, {.bytes = std::min(reached.bytes, part_bytes_max),
                      .locks = reached.locks,
                      .notifications = reached.notifications,
                      .rights = reached.rights,
                      .in_program = reached.in_program != 0});
  publish(state);
  state->open();
  return state;
}

}  // namespace tonari::window
