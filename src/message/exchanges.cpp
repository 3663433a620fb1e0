#include "message/exchanges.hpp"

#include <algorithm>
#include <utility>
#include <vector>

// The messages of a round travel concurrently. Each round has a limited number of peers. A rank copies its own part
// itself, while the messages of the first round are under way.
namespace tonari::message {

namespace {

// An all-gather as executed by one rank. A part crosses each link between hosts once: its owner sends it to its
// neighbours and to one rank of each other host, which sends it to its own neighbours.
class AllGather {
 public:
  AllGather(const HostGroups& groups, int rank, const Parts& parts) noexcept
      : groups_(groups),
        rank_(rank),
        part_(parts),
        own_(groups.group_of(rank)),
        neighbours_(groups.members(own_)),
        place_(static_cast<std::size_t>(std::ranges::lower_bound(neighbours_, rank) - neighbours_.begin())) {}

  void write(Schedule& schedule, const Part& mine) const {
    for (const int neighbour : neighbours_) {
      if (neighbour == rank_) continue;
      schedule.receive(part_(neighbour), neighbour);
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
  // The rank of this host that receives the part of another host's rank with this index.
  [[nodiscard]] int taker(std::size_t index) const noexcept { return neighbours_[index % neighbours_.size()]; }

  void cross(Schedule& schedule, const Part& mine, std::size_t distance) const {
    const auto behind = groups_.members((own_ + distance) % groups_.count());
    const auto before = groups_.members((own_ + groups_.count() - distance) % groups_.count());
    for (std::size_t index = place_; index < before.size(); index += neighbours_.size()) {
      schedule.receive(part_(before[index]), before[index]);
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
            if (neighbour != rank_) schedule.send(part_(members[index]), neighbour);
          }
        } else {
          schedule.receive(part_(members[index]), taker(index));
        }
        if (++parts % peers_a_round == 0) schedule.next_round();
      }
    }
  }

  const HostGroups& groups_;
  int rank_;
  const Parts& part_;
  std::size_t own_;
  std::span<const int> neighbours_;
  std::size_t place_;
};

// In round k a rank sends to the peers_a_round ranks from k * peers_a_round + 1 behind it on, and receives from as many
// ranks equally far before it. So no rank is the first target of all others.
void write_messages_to_all(Schedule& schedule, const Context& context, const Parts& sent, const Parts& received) {
  const int size = context.size();
  const int me = context.rank();
  for (int distance = 1; distance < size; ++distance) {
    const int behind = (me + distance) % size;
    const int before = (me - distance + size) % size;
    schedule.receive(received(before), before);
    schedule.send(sent(behind), behind);
    if (distance % peers_a_round == 0) schedule.next_round();
  }
}

}  // namespace

// Sends to the farthest child first, because it has the most to forward.
void write_broadcast(Schedule& schedule, const Tree& tree, const Part& data) {
  if (tree.parent >= 0) {
    schedule.receive(data, tree.parent);
    schedule.next_round();
  }
  std::for_each(tree.children.rbegin(), tree.children.rend(), [&](int child) { schedule.send(data, child); });
}

void write_broadcast(Schedule& schedule, const Context& context, const Part& data, int root) {
  write_broadcast(schedule, Tree::of_all(context.hosts(), context.rank(), root), data);
}

void write_gather(Schedule& schedule, const Context& context, const Part* mine, const Parts& all, int root) {
  if (context.rank() != root) return schedule.send(*mine, root);
  if (mine != nullptr) schedule.copy_meanwhile(all(root), *mine);
  for (int rank = 0; rank < context.size(); ++rank) {
    if (rank != root) schedule.receive(all(rank), rank);
  }
}

void write_scatter(Schedule& schedule, const Context& context, const Parts& all, const Part* mine, int root) {
  if (context.rank() != root) return schedule.receive(*mine, root);
  if (mine != nullptr) schedule.copy_meanwhile(*mine, all(root));
  for (int rank = 0; rank < context.size(); ++rank) {
    if (rank != root) schedule.send(all(rank), rank);
  }
}

void write_all_gather(Schedule& schedule, const Context& context, const Part* mine, const Parts& all) {
  const Part own = all(context.rank());
  if (mine != nullptr) schedule.copy_meanwhile(own, *mine);
  AllGather(context.hosts(), context.rank(), all).write(schedule, mine != nullptr ? *mine : own);
}

void write_all_to_all(Schedule& schedule, const Context& context, const Parts& sent, const Parts& received) {
  schedule.copy_meanwhile(received(context.rank()), sent(context.rank()));
  write_messages_to_all(schedule, context, sent, received);
}

void write_all_to_all_in_place(Schedule& schedule, const Context& context, const Parts& exchanged) {
  std::vector<std::span<std::byte>> copies;
  copies.reserve(static_cast<std::size_t>(context.size()));
  for (int rank = 0; rank < context.size(); ++rank) {
    const Part part = exchanged(rank);
    copies.push_back(schedule.scratch(rank == context.rank() ? 0 : part.bytes()));
    if (rank != context.rank()) schedule.copy(Part(copies.back()), part);
  }
  schedule.next_round();
  write_messages_to_all(
      schedule, context, [&](int rank) { return Part(copies[static_cast<std::size_t>(rank)]); }, exchanged);
}

}  // namespace tonari::message
