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

  void write(Rounds& rounds, const Part& mine) const {
    for (const int neighbour : neighbours_) {
      if (neighbour == rank_) continue;
      rounds.receive(part_(neighbour), neighbour);
      rounds.send(mine, neighbour);
    }
    for (std::size_t distance = 1; distance < groups_.count();
         ++distance) {  // so that no host is the first target of all others
      cross(rounds, mine, distance);
      if (distance % peers_a_round == 0) rounds.next_round();
    }
    rounds.next_round();
    if (neighbours_.size() > 1) pass_on(rounds);
  }

 private:
  // The rank of this host that receives the part of another host's rank with this index.
  [[nodiscard]] int taker(std::size_t index) const noexcept { return neighbours_[index % neighbours_.size()]; }

  void cross(Rounds& rounds, const Part& mine, std::size_t distance) const {
    const auto behind = groups_.members((own_ + distance) % groups_.count());
    const auto before = groups_.members((own_ + groups_.count() - distance) % groups_.count());
    for (std::size_t index = place_; index < before.size(); index += neighbours_.size()) {
      rounds.receive(part_(before[index]), before[index]);
    }
    rounds.send(mine, behind[place_ % behind.size()]);
  }

  void pass_on(Rounds& rounds) const {
    std::size_t parts = 0;
    for (std::size_t group = 0; group < groups_.count(); ++group) {
      const auto members = groups_.members(group);
      for (std::size_t index = 0; group != own_ && index < members.size(); ++index) {
        if (taker(index) == rank_) {
          for (const int neighbour : neighbours_) {
            if (neighbour != rank_) rounds.send(part_(members[index]), neighbour);
          }
        } else {
          rounds.receive(part_(members[index]), taker(index));
        }
        if (++parts % peers_a_round == 0) rounds.next_round();
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
void write_messages_to_all(Rounds& rounds, const Members& members, const Parts& sent, const Parts& received) {
  const int size = members.size();
  const int me = members.rank();
  for (int distance = 1; distance < size; ++distance) {
    const int behind = (me + distance) % size;
    const int before = (me - distance + size) % size;
    rounds.receive(received(before), before);
    rounds.send(sent(behind), behind);
    if (distance % peers_a_round == 0) rounds.next_round();
  }
}

}  // namespace

// Sends to the farthest child first, because it has the most to forward.
void write_broadcast(Rounds& rounds, const Tree& tree, const Part& data) {
  if (tree.parent >= 0) {
    rounds.receive(data, tree.parent);
    rounds.next_round();
  }
  std::for_each(tree.children.rbegin(), tree.children.rend(), [&](int child) { rounds.send(data, child); });
}

void write_broadcast(Rounds& rounds, const Members& members, const Part& data, int root) {
  write_broadcast(rounds, Tree::of_all(members.hosts(), members.rank(), root), data);
}

void write_gather(Rounds& rounds, const Members& members, const Part* mine, const Parts& all, int root) {
  if (members.rank() != root) return rounds.send(*mine, root);
  if (mine != nullptr) rounds.copy_meanwhile(all(root), *mine);
  for (int rank = 0; rank < members.size(); ++rank) {
    if (rank != root) rounds.receive(all(rank), rank);
  }
}

void write_scatter(Rounds& rounds, const Members& members, const Parts& all, const Part* mine, int root) {
  if (members.rank() != root) return rounds.receive(*mine, root);
  if (mine != nullptr) rounds.copy_meanwhile(*mine, all(root));
  for (int rank = 0; rank < members.size(); ++rank) {
    if (rank != root) rounds.send(all(rank), rank);
  }
}

void write_all_gather(Rounds& rounds, const Members& members, const Part* mine, const Parts& all) {
  const Part own = all(members.rank());
  if (mine != nullptr) rounds.copy_meanwhile(own, *mine);
  AllGather(members.hosts(), members.rank(), all).write(rounds, mine != nullptr ? *mine : own);
}

void write_all_to_all(Rounds& rounds, const Members& members, const Parts& sent, const Parts& received) {
  rounds.copy_meanwhile(received(members.rank()), sent(members.rank()));
  write_messages_to_all(rounds, members, sent, received);
}

void write_all_to_all_in_place(Rounds& rounds, const Members& members, const Parts& exchanged) {
  std::vector<std::span<std::byte>> copies;
  copies.reserve(static_cast<std::size_t>(members.size()));
  for (int rank = 0; rank < members.size(); ++rank) {
    const Part part = exchanged(rank);
    copies.push_back(rounds.scratch(rank == members.rank() ? 0 : part.bytes()));
    if (rank != members.rank()) rounds.copy(Part(copies.back()), part);
  }
  rounds.next_round();
  write_messages_to_all(
      rounds, members, [&](int rank) { return Part(copies[static_cast<std::size_t>(rank)]); }, exchanged);
}

}  // namespace tonari::message
