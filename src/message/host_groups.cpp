#include "message/host_groups.hpp"

#include "job/group.hpp"
#include "job/session.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace tonari::message {

namespace {

std::vector<std::size_t> groups_by_host(const job::Session& session, const Group& group) {
  constexpr auto none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> number_of(static_cast<std::size_t>(session.hosts()), none);
  std::vector<std::size_t> group_of;
  std::size_t count = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    std::size_t& number = number_of[static_cast<std::size_t>(session.host(job::rank_at(group, rank)))];
    if (number == none) number = count++;
    group_of.push_back(number);
  }
  if (count == 1) std::iota(group_of.begin(), group_of.end(), std::size_t{0});
  return group_of;
}

// Finds a member's parent and children in a binomial tree. Counting from the root, the parent of member p is p without
// its lowest set bit, and its children are p + bit for every lower bit. `at` returns the rank at a position.
template <class At>
void hang(Tree& tree, std::size_t size, At&& at, std::size_t position, std::size_t root) {
  const std::size_t me = (position + size - root) % size;
  const auto rank_of = [&](std::size_t relative) { return at((relative + root) % size); };
  if (me != 0) tree.parent = rank_of(me & (me - 1));
  const std::size_t below = me == 0 ? std::bit_ceil(size) : me & (~me + 1);
  for (std::size_t bit = 1; bit < below && me + bit < size; bit <<= 1) tree.children.push_back(rank_of(me + bit));
}

std::size_t position_in(std::span<const int> members, int rank) noexcept {
  return static_cast<std::size_t>(std::ranges::lower_bound(members, rank) - members.begin());
}

}  // namespace

HostGroups::HostGroups(const job::Session& session, const Group& group) : HostGroups(groups_by_host(session, group)) {}

HostGroups HostGroups::each_alone(int ranks) {
  std::vector<std::size_t> group_of(static_cast<std::size_t>(ranks));
  std::iota(group_of.begin(), group_of.end(), std::size_t{0});
  return HostGroups(std::move(group_of));
}

HostGroups::HostGroups(std::vector<std::size_t> group_of)
    : group_of_(std::move(group_of)), in_order_(std::ranges::is_sorted(group_of_)) {
  starts_.resize(*std::ranges::max_element(group_of_) + 2);
  for (const std::size_t group : group_of_) ++starts_[group + 1];
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  ranks_.resize(group_of_.size());
  std::vector<std::size_t> next(starts_);
  for (std::size_t rank = 0; rank < group_of_.size(); ++rank) ranks_[next[group_of_[rank]]++] = static_cast<int>(rank);
}

Tree Tree::of_group(const HostGroups& groups, int rank) {
  Tree tree;
  const auto members = groups.members(groups.group_of(rank));
  hang(
      tree, members.size(), [&](std::size_t position) { return members[position]; }, position_in(members, rank), 0);
  return tree;
}

Tree Tree::of_all(const HostGroups& groups, int rank, int root) {
  Tree tree;
  const std::size_t own = groups.group_of(rank);
  const std::size_t first = groups.group_of(root);
  const auto leader_of = [&](std::size_t group) { return group == first ? root : groups.leader(group); };
  const auto members = groups.members(own);
  hang(
      tree, members.size(), [&](std::size_t position) { return members[position]; }, position_in(members, rank),
      position_in(members, leader_of(own)));
  if (leader_of(own) == rank) hang(tree, groups.count(), leader_of, own, first);
  return tree;
}

}  // namespace tonari::message
