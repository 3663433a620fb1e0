#pragma once

#include <tonari/job.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace tonari::job {
class Session;
}

namespace tonari::message {

/// The ranks of a communicator grouped by host. Ranks are numbered as in the communicator, groups in the order of their
/// first ranks.
///
/// If all ranks are on one host, all links cost the same: then each rank is a group of its own.
class HostGroups {
 public:
  HostGroups(const job::Session& session, const Group& group);
  /// Makes groups from each rank's group number. A new group must have the next number.
  explicit HostGroups(std::vector<std::size_t> group_of);
  static HostGroups each_alone(int ranks);

  [[nodiscard]] std::size_t count() const noexcept { return starts_.size() - 1; }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(ranks_.size()); }
  /// Ranks of a group, in ascending order.
  [[nodiscard]] std::span<const int> members(std::size_t group) const noexcept {
    return std::span(ranks_).subspan(starts_[group], starts_[group + 1] - starts_[group]);
  }
  [[nodiscard]] std::size_t group_of(int rank) const noexcept { return group_of_[static_cast<std::size_t>(rank)]; }
  /// True if the ranks are in ascending order when read group by group: no host has ranks both before and after another
  /// host's rank.
  [[nodiscard]] bool in_order() const noexcept { return in_order_; }
  /// First rank of a group.
  [[nodiscard]] int leader(std::size_t group) const noexcept { return ranks_[starts_[group]]; }

 private:
  std::vector<std::size_t> group_of_;
  std::vector<int> ranks_;  // all ranks, group by group
  std::vector<std::size_t> starts_;
  bool in_order_;
};

/// The ranks that take part in a collective, as one of them sees them: all that the recording of a collective depends
/// on. `hosts` must outlive it.
class Members {
 public:
  Members(const HostGroups& hosts, int rank) noexcept : hosts_(&hosts), rank_(rank) {}

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return hosts_->ranks(); }
  [[nodiscard]] const HostGroups& hosts() const noexcept { return *hosts_; }

 private:
  const HostGroups* hosts_;
  int rank_;
};

/// Some ranks of a communicator, seen from the one at position(). The groups must outlive it.
class Circle {
 public:
  /// All ranks.
  static Circle all(int ranks, int rank) noexcept {
    return {nullptr, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank)};
  }
  /// The first rank of each group, seen from the first rank of this rank's group.
  static Circle leaders(const HostGroups& groups, int rank) noexcept {
    return {&groups, groups.count(), groups.group_of(rank)};
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t position() const noexcept { return position_; }
  /// Returns the rank at a position.
  [[nodiscard]] int at(std::size_t position) const noexcept {
    return groups_ == nullptr ? static_cast<int>(position) : groups_->leader(position);
  }
  [[nodiscard]] int after(std::size_t distance) const noexcept { return at((position_ + distance) % size_); }
  [[nodiscard]] int before(std::size_t distance) const noexcept { return at((position_ + size_ - distance) % size_); }

 private:
  Circle(const HostGroups* groups, std::size_t size, std::size_t position) noexcept
      : groups_(groups), size_(size), position_(position) {}
  const HostGroups* groups_;  // null: all ranks
  std::size_t size_;
  std::size_t position_;
};

/// A rank's place in a binomial tree. Finding it takes time and memory in proportion to the logarithm of the number of
/// ranks.
struct Tree {
  int parent = -1;
  std::vector<int> children{};  // from nearest to farthest: in this order they cover the ranks that follow

  /// Tree over the group of `rank`, with the group's first rank as root.
  static Tree of_group(const HostGroups& groups, int rank);
  /// Tree over all ranks that crosses each link between hosts once: one tree over the groups' leaders, and below each
  /// leader one over its group. The root leads its own group; in other groups the first rank leads.
  static Tree of_all(const HostGroups& groups, int rank, int root);
};

}  // namespace tonari::message
