#include "message/collectives.hpp"

#include <tonari/message.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

// Collectives that move each rank's own part: gather, scatter, all-gather, all-to-all. The messages of a round travel
// concurrently. Each round has a limited number of peers, so that a large job does not start thousands of messages at
// once. A rank copies its part for itself.
namespace tonari {

using detail::Counts;
using message::Context;
using message::HostGroups;
using message::is_rank;
using message::refuse;
using message::Schedule;
using message::start_collective;

namespace {

constexpr int peers_a_round = 64;

// The place of each rank's part in a buffer. All parts have one size, or sizes given by counts.
class Parts {
 public:
  // Empty if the parts do not fit into `bytes`.
  static std::optional<Parts> equal(const Context& context, std::size_t bytes, std::size_t part) noexcept {
    if (bytes / static_cast<std::size_t>(context.size()) < part) return std::nullopt;
    return Parts({}, part);
  }
  static std::optional<Parts> counted(const Context& context, std::size_t bytes, const Counts& counts) noexcept {
    if (counts.of_ranks.size() != static_cast<std::size_t>(context.size())) return std::nullopt;
    std::size_t left = bytes / counts.element_bytes;
    for (const std::size_t count : counts.of_ranks) {
      if (count > left) return std::nullopt;
      left -= count;
    }
    return Parts(counts.of_ranks, counts.element_bytes);
  }

  /// Returns the parts, by rank.
  template <class Byte>
  [[nodiscard]] std::vector<std::span<Byte>> of(std::span<Byte> bytes, int ranks) const {
    std::vector<std::span<Byte>> all;
    all.reserve(static_cast<std::size_t>(ranks));
    for_each(ranks, [&](int, std::size_t offset, std::size_t count) { all.push_back(bytes.subspan(offset, count)); });
    return all;
  }

  /// Visits (rank, offset, bytes) in order of rank.
  template <class Visit>
  void for_each(int ranks, Visit&& visit) const {
    std::size_t offset = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::size_t bytes = counts_.empty() ? unit_ : counts_[static_cast<std::size_t>(rank)] * unit_;
      visit(rank, offset, bytes);
      offset += bytes;
    }
  }

 private:
  Parts(std::span<const std::size_t> counts, std::size_t unit) noexcept : counts_(counts), unit_(unit) {}
  std::span<const std::size_t> counts_;  // empty: all parts have `unit_` bytes
  std::size_t unit_;
};

void copy_own(std::span<std::byte> to, std::span<const std::byte> from) noexcept {
  if (!to.empty()) std::memcpy(to.data(), from.data(), std::min(to.size(), from.size()));
}

void write_gather(Schedule& schedule, const Context& context, std::span<const std::byte> mine, std::span<std::byte> all,
                  const Parts& parts) {
  parts.for_each(context.size(), [&](int rank, std::size_t offset, std::size_t bytes) {
    if (rank == context.rank()) {
      copy_own(all.subspan(offset, bytes), mine);
    } else {
      schedule.receive(all.subspan(offset, bytes), rank);
    }
  });
}

void write_scatter(Schedule& schedule, const Context& context, std::span<const std::byte> all,
                   std::span<std::byte> mine, const Parts& parts) {
  parts.for_each(context.size(), [&](int rank, std::size_t offset, std::size_t bytes) {
    if (rank == context.rank()) {
      copy_own(mine.first(std::min(mine.size(), bytes)), all.subspan(offset, bytes));
    } else {
      schedule.send(all.subspan(offset, bytes), rank);
    }
  });
}

// In round k a rank sends to the peers_a_round ranks from k * peers_a_round + 1 behind it on, and receives from as many
// ranks equally far before it. So no rank is the first target of all others.
void write_exchange(Schedule& schedule, const Context& context, std::span<const std::byte> sent,
                    const Parts& sent_parts, std::span<std::byte> received, const Parts& received_parts) {
  const int size = context.size();
  const int me = context.rank();
  const auto to = sent_parts.of(sent, size);
  const auto from = received_parts.of(received, size);
  copy_own(from[static_cast<std::size_t>(me)], to[static_cast<std::size_t>(me)]);
  for (int distance = 1; distance < size; ++distance) {
    const int behind = (me + distance) % size;
    const int before = (me - distance + size) % size;
    schedule.receive(from[static_cast<std::size_t>(before)], before);
    schedule.send(to[static_cast<std::size_t>(behind)], behind);
    if (distance % peers_a_round == 0) schedule.next_round();
  }
}

// An all-gather as executed by one rank. A part crosses each link between hosts once: its owner sends it to its
// neighbours and to one rank of each other host, which sends it to its own neighbours.
class AllGather {
 public:
  AllGather(const HostGroups& groups, int rank, std::vector<std::span<std::byte>> parts) noexcept
      : groups_(groups),
        rank_(rank),
        parts_(std::move(parts)),
        own_(groups.group_of(rank)),
        neighbours_(groups.members(own_)),
        place_(static_cast<std::size_t>(std::ranges::lower_bound(neighbours_, rank) - neighbours_.begin())) {}

  void write(Schedule& schedule, std::span<const std::byte> mine) const {
    copy_own(part(rank_), mine);
    for (const int neighbour : neighbours_) {
      if (neighbour == rank_) continue;
      schedule.receive(part(neighbour), neighbour);
      schedule.send(mine, neighbour);
    }
    for (std::size_t distance = 1; distance < groups_.count();
         ++distance) {  // so that no host is the first target of all others
      cross(schedule, mine, distance);
      if (distance % peers_a_round == 0) schedule.next_round();
    }
    schedule.next_round();
    if (neighbours_.size() > 1) pass_on(schedule);
  }

 private:
  [[nodiscard]] std::span<std::byte> part(int rank) const noexcept { return parts_[static_cast<std::size_t>(rank)]; }
  // The rank of this host that receives the part of another host's rank with this index.
  [[nodiscard]] int taker(std::size_t index) const noexcept { return neighbours_[index % neighbours_.size()]; }

  void cross(Schedule& schedule, std::span<const std::byte> mine, std::size_t distance) const {
    const auto behind = groups_.members((own_ + distance) % groups_.count());
    const auto before = groups_.members((own_ + groups_.count() - distance) % groups_.count());
    for (std::size_t index = place_; index < before.size(); index += neighbours_.size()) {
      schedule.receive(part(before[index]), before[index]);
    }
    schedule.send(mine, behind[place_ % behind.size()]);
  }

  void pass_on(Schedule& schedule) const {
    std::size_t parts = 0;
    for (std::size_t group = 0; group < groups_.count(); ++group) {
      const auto members = groups_.members(group);
      for (std::size_t index = 0; group != own_ && index < members.size(); ++index) {
        if (taker(index) == rank_) {
          for (const int neighbour : neighbours_) {
            if (neighbour != rank_) schedule.send(part(members[index]), neighbour);
          }
        } else {
          schedule.receive(part(members[index]), taker(index));
        }
        if (++parts % peers_a_round == 0) schedule.next_round();
      }
    }
  }

  const HostGroups& groups_;
  int rank_;
  std::vector<std::span<std::byte>> parts_;
  std::size_t own_;
  std::span<const int> neighbours_;
  std::size_t place_;
};

// If the arguments of a rank do not fit, its collective returns invalid, but it takes part with empty messages. So the
// other ranks proceed, and ranks that expected more bytes return invalid too.
void write_nothing_to_and_from_all(Schedule& schedule, const Context& context, bool sends, bool receives) {
  schedule.fail(Status::invalid);
  for (int rank = 0; rank < context.size(); ++rank) {
    if (rank == context.rank()) continue;
    if (sends) schedule.send({}, rank);
    if (receives) schedule.receive({}, rank);
  }
}

Request gather_parts(Context& context, std::span<const std::byte> mine, std::span<std::byte> all,
                     const std::optional<Parts>& parts, int root) noexcept {
  if (!is_rank(context, root)) return refuse(context);
  return start_collective(context, job::Wait::gather, [&](Schedule& schedule) {
    if (context.rank() != root) return schedule.send(mine, root);
    if (!parts) return write_nothing_to_and_from_all(schedule, context, false, true);
    write_gather(schedule, context, mine, all, *parts);
  });
}

Request scatter_parts(Context& context, std::span<const std::byte> all, std::span<std::byte> mine,
                      const std::optional<Parts>& parts, int root) noexcept {
  if (!is_rank(context, root)) return refuse(context);
  return start_collective(context, job::Wait::scatter, [&](Schedule& schedule) {
    if (context.rank() != root) return schedule.receive(mine, root);
    if (!parts) return write_nothing_to_and_from_all(schedule, context, true, false);
    write_scatter(schedule, context, all, mine, *parts);
  });
}

Request exchange_parts(Context& context, std::span<const std::byte> sent, const std::optional<Parts>& sent_parts,
                       std::span<std::byte> received, const std::optional<Parts>& received_parts) noexcept {
  return start_collective(context, job::Wait::all_to_all, [&](Schedule& schedule) {
    if (!sent_parts || !received_parts) return write_nothing_to_and_from_all(schedule, context, true, true);
    write_exchange(schedule, context, sent, *sent_parts, received, *received_parts);
  });
}

// Without `parts` this rank forwards only empty messages.
Request gather_all_parts(Context& context, std::span<const std::byte> mine, std::span<std::byte> all,
                         const std::optional<Parts>& parts) noexcept {
  return start_collective(context, job::Wait::all_gather, [&](Schedule& schedule) {
    const int size = context.size();
    if (parts) return AllGather(context.hosts(), context.rank(), parts->of(all, size)).write(schedule, mine);
    schedule.fail(Status::invalid);
    std::vector<std::span<std::byte>> nothing(static_cast<std::size_t>(size));
    AllGather(context.hosts(), context.rank(), std::move(nothing)).write(schedule, {});
  });
}

}  // namespace

Request Communicator::start_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                                         Rank root) noexcept {
  return gather_parts(*context_, mine, all, Parts::equal(*context_, all.size(), mine.size()), root.value());
}

Request Communicator::start_gather_v_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Counts counts,
                                           Rank root) noexcept {
  return gather_parts(*context_, mine, all, Parts::counted(*context_, all.size(), counts), root.value());
}

Request Communicator::start_scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine,
                                          Rank root) noexcept {
  return scatter_parts(*context_, all, mine, Parts::equal(*context_, all.size(), mine.size()), root.value());
}

Request Communicator::start_scatter_v_bytes(std::span<const std::byte> all, Counts counts, std::span<std::byte> mine,
                                            Rank root) noexcept {
  return scatter_parts(*context_, all, mine, Parts::counted(*context_, all.size(), counts), root.value());
}

Request Communicator::start_all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) noexcept {
  return gather_all_parts(*context_, mine, all, Parts::equal(*context_, all.size(), mine.size()));
}

Request Communicator::start_all_gather_v_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                                               Counts counts) noexcept {
  auto parts = Parts::counted(*context_, all.size(), counts);
  if (parts && counts.of_ranks[rank().index()] * counts.element_bytes != mine.size()) parts.reset();
  return gather_all_parts(*context_, mine, all, parts);
}

Request Communicator::start_all_to_all_bytes(std::span<const std::byte> sent, std::span<std::byte> received,
                                             std::size_t element_bytes) noexcept {
  const std::size_t part = sent.size() / element_bytes / static_cast<std::size_t>(size()) * element_bytes;
  const bool fits = part * static_cast<std::size_t>(size()) == sent.size() && received.size() >= sent.size();
  const auto parts = fits ? Parts::equal(*context_, sent.size(), part) : std::nullopt;
  return exchange_parts(*context_, sent, parts, received, parts);
}

Request Communicator::start_all_to_all_v_bytes(std::span<const std::byte> sent, Counts sent_counts,
                                               std::span<std::byte> received, Counts received_counts) noexcept {
  const auto sent_parts = Parts::counted(*context_, sent.size(), sent_counts);
  const auto received_parts = Parts::counted(*context_, received.size(), received_counts);
  return exchange_parts(*context_, sent, sent_parts, received, received_parts);
}

Status Communicator::gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Rank root) noexcept {
  return start_gather_bytes(mine, all, root).wait().status;
}

}  // namespace tonari
