#pragma once

#include <tonari/job.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace tonari::job {
class Session;
}

namespace tonari::message {

/// The ranks of a communicator by the hosts that they are on. Its numbers are those of the communicator; groups are
/// numbered in the order of their first ranks.
///
/// Where all are on one host, no link is dearer than another: then each rank is a group of its own.
class HostGroups {
 public:
  HostGroups(const job::Session& session, const Group& group);
  /// `group_of`: by rank. New groups have the next number.
  explicit HostGroups(std::vector<std::size_t> group_of);
  static HostGroups each_alone(int ranks);

  [[nodiscard]] std::size_t count() const noexcept { return starts_.size() - 1; }
  /// In ascending order.
  [[nodiscard]] std::span<const int> members(std::size_t group) const noexcept {
    return std::span(ranks_).subspan(starts_[group], starts_[group + 1] - starts_[group]);
  }
  [[nodiscard]] std::size_t group_of(int rank) const noexcept { return group_of_[static_cast<std::size_t>(rank)]; }
  /// Group by group the ranks are in order: no host has ranks both before and behind another's.
  [[nodiscard]] bool in_order() const noexcept;

 private:
  std::vector<std::size_t> group_of_;
  std::vector<int> ranks_;  // group by group
  std::vector<std::size_t> starts_;
};

/// A rank's place in a binomial tree.
struct Tree {
  int parent = -1;
  std::vector<int> children{};  // from the nearest to the farthest: in this order they have the ranks that follow

  /// Over the group of `rank`, below its first.
  static Tree of_group(const HostGroups& groups, int rank);
  /// Over all ranks, by which each link between hosts is crossed once: one over leaders of the groups, and below each
  /// leader one over its group. The root leads its group, in each other the first rank does.
  static Tree of_all(const HostGroups& groups, int rank, int root);
};

}  // namespace tonari::message
