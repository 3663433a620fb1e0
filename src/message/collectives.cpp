#include "message/collectives.hpp"

#include <tonari/message.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

// Barrier, broadcast and the reductions: through shared memory, or recorded as a Schedule. Their blocking forms wait
// for the started forms.
namespace tonari {

using detail::Reduction;
using message::Context;
using message::HostGroups;
using message::is_rank;
using message::refuse;
using message::Schedule;
using message::SharedCollective;
using message::shares_data;
using message::start_collective;
using message::start_shared;
using message::Tree;

namespace {

// Returns the host groups if combining within each host first keeps the operands in the order of ranks; otherwise each
// rank alone.
HostGroups hosts_in_order(const Context& context) {
  return context.hosts().in_order() ? context.hosts() : HostGroups::each_alone(context.size());
}

// Sends to the farthest child first, because it has the most to forward.
void write_broadcast(Schedule& schedule, const Tree& tree, std::span<std::byte> bytes) {
  if (tree.parent >= 0) {
    schedule.receive(bytes, tree.parent);
    schedule.next_round();
  }
  std::for_each(tree.children.rbegin(), tree.children.rend(), [&](int child) { schedule.send(bytes, child); });
}

// Reduces in place.
void write_reduce(Schedule& schedule, const Tree& tree, std::span<std::byte> values, Reduction reduction) {
  for (const int child : tree.children) {
    const auto part = schedule.scratch(values.size());
    schedule.receive(part, child);
    schedule.fold(values, part, reduction);
  }
  schedule.next_round();
  if (tree.parent < 0) return;
  schedule.send(values, tree.parent);
  schedule.next_round();
}

// Some ranks of a communicator, seen from the rank at `position`.
struct Circle {
  std::vector<int> ranks;
  std::size_t position;

  [[nodiscard]] std::size_t size() const noexcept { return ranks.size(); }
  [[nodiscard]] int after(std::size_t distance) const noexcept { return ranks[(position + distance) % size()]; }
  [[nodiscard]] int before(std::size_t distance) const noexcept {
    return ranks[(position + size() - distance) % size()];
  }
};

// The first rank of each group, seen from the first rank of this rank's group.
Circle leaders_of(const HostGroups& groups, int rank) {
  Circle circle{{}, groups.group_of(rank)};
  for (std::size_t group = 0; group < groups.count(); ++group) circle.ranks.push_back(groups.members(group).front());
  return circle;
}

// Dissemination (Hensgen, Finkel, Manber 1988).
void write_barrier(Schedule& schedule, const Circle& circle) {
  for (std::size_t distance = 1; distance < circle.size(); distance *= 2) {
    schedule.send({}, circle.after(distance));
    schedule.receive({}, circle.before(distance));
    schedule.next_round();
  }
}

// values = part op values
void fold_before(Schedule& schedule, std::span<std::byte> values, std::span<std::byte> part, Reduction reduction) {
  schedule.fold(part, values, reduction);
  schedule.copy(values, part);
}

// Each rank gathers the values of all (Bruck et al. 1997: in round k it has the values of 2^k ranks, its own and the
// next ones), then combines them in the order of ranks.
void write_all_reduce_by_gathering(Schedule& schedule, const Circle& circle, std::span<std::byte> values,
                                   Reduction reduction) {
  const std::size_t size = circle.size();
  const std::size_t bytes = values.size();
  const auto all = schedule.scratch(size * bytes);  // starts with this rank's values and wraps around
  schedule.copy(all.first(bytes), values);
  schedule.next_round();
  for (std::size_t have = 1; have < size; have *= 2) {
    const auto given = std::min(have, size - have) * bytes;
    schedule.send(all.first(given), circle.before(have));
    schedule.receive(all.subspan(have * bytes, given), circle.after(have));
    schedule.next_round();
  }
  const auto of = [&](std::size_t member) {
    return all.subspan((member + size - circle.position) % size * bytes, bytes);
  };
  schedule.copy(values, of(0));
  for (std::size_t member = 1; member < size; ++member) schedule.fold(values, of(member), reduction);
}

// Each rank combines one stretch of the values, in the order of ranks, and sends it to all. Two rounds; each rank
// transfers the minimum.
void write_all_reduce_by_stretches(Schedule& schedule, const Circle& circle, std::span<std::byte> values,
                                   Reduction reduction) {
  const std::size_t size = circle.size();
  const auto stretch = [&](std::size_t member) {
    return message::stretch_of(values, reduction.element_bytes, member, size);
  };
  const auto mine = stretch(circle.position);
  std::span<std::byte> sum;  // the sum over the ranks before the current one
  for (std::size_t member = 0; member < size; ++member) {
    if (member == circle.position) {
      if (!sum.empty()) fold_before(schedule, mine, sum, reduction);
      sum = mine;
      continue;
    }
    schedule.send(stretch(member), circle.ranks[member]);
    const auto part = schedule.scratch(mine.size());
    schedule.receive(part, circle.ranks[member]);
    if (!sum.empty()) {
      schedule.fold(sum, part, reduction);
    } else {
      sum = part;
    }
  }
  schedule.next_round();
  for (std::size_t member = 0; member < size; ++member) {
    if (member == circle.position) continue;
    schedule.send(mine, circle.ranks[member]);
    schedule.receive(stretch(member), circle.ranks[member]);
  }
  schedule.next_round();
}

// Each host combines its own values, one rank per host combines the values of all hosts, and the other ranks receive
// the result from it. Up to the number of ranks that may use a board, all ways combine in the same order, so that
// rounding is the same.
void write_all_reduce(Schedule& schedule, const Context& context, std::span<std::byte> values, Reduction reduction) {
  constexpr std::size_t gathered_bytes_max = 4096;
  const HostGroups groups = hosts_in_order(context);
  if (context.size() > message::ranks_on_a_board_max) {
    const Tree tree = Tree::of_all(groups, context.rank(), 0);
    write_reduce(schedule, tree, values, reduction);
    return write_broadcast(schedule, tree, values);
  }
  const Tree tree = Tree::of_group(groups, context.rank());
  write_reduce(schedule, tree, values, reduction);
  if (tree.parent < 0) {
    const Circle leaders = leaders_of(groups, context.rank());
    if (values.size() <= gathered_bytes_max) {
      write_all_reduce_by_gathering(schedule, leaders, values, reduction);
    } else {
      write_all_reduce_by_stretches(schedule, leaders, values, reduction);
    }
    schedule.next_round();
  }
  write_broadcast(schedule, tree, values);
}

// After round k (Hillis, Steele 1986) a rank has combined the values of the 2^k ranks up to and including itself.
void write_scan(Schedule& schedule, const Context& context, std::span<std::byte> values, Reduction reduction) {
  const int me = context.rank();
  const auto part = schedule.scratch(values.size());
  for (int distance = 1; distance < context.size(); distance *= 2) {
    if (me + distance < context.size()) schedule.send(values, me + distance);
    if (me >= distance) {
      schedule.receive(part, me - distance);
      fold_before(schedule, values, part, reduction);
    }
    schedule.next_round();
  }
}

SharedCollective broadcast_of(Context& context, std::span<std::byte> bytes, int root) noexcept {
  return is_rank(context, root) ? SharedCollective::broadcast(context, bytes, root)
                                : SharedCollective::refused(context);
}

}  // namespace

Request Communicator::start_barrier() noexcept {
  if (context_->board() != nullptr) {
    return start_shared(*context_, job::Wait::barrier, SharedCollective::barrier(*context_));
  }
  return start_collective(*context_, job::Wait::barrier, [this](Schedule& schedule) {
    const Tree tree = Tree::of_group(context_->hosts(), context_->rank());
    write_reduce(schedule, tree, {}, {});
    if (tree.parent < 0) write_barrier(schedule, leaders_of(context_->hosts(), context_->rank()));
    write_broadcast(schedule, tree, {});
  });
}

Request Communicator::start_broadcast_bytes(std::span<std::byte> bytes, Rank root) noexcept {
  if (shares_data(*context_)) {
    return start_shared(*context_, job::Wait::broadcast, broadcast_of(*context_, bytes, root.value()));
  }
  if (!is_rank(*context_, root.value())) return refuse(*context_);
  return start_collective(*context_, job::Wait::broadcast, [&](Schedule& schedule) {
    write_broadcast(schedule, Tree::of_all(context_->hosts(), context_->rank(), root.value()), bytes);
  });
}

Request Communicator::start_reduce_bytes(std::span<std::byte> values, Rank root, Reduction reduction) noexcept {
  if (!is_rank(*context_, root.value())) return refuse(*context_);
  return start_collective(*context_, job::Wait::reduce, [&](Schedule& schedule) {
    const bool in_place = root == context_->rank() && root == 0;
    const auto sum = in_place ? values : schedule.scratch(values.size());
    if (!in_place && !values.empty()) std::memcpy(sum.data(), values.data(), values.size());
    write_reduce(schedule, Tree::of_all(hosts_in_order(*context_), context_->rank(), 0), sum, reduction);
    if (root == 0) return;
    if (context_->rank() == 0) schedule.send(sum, root.value());
    if (root == context_->rank()) schedule.receive(values, 0);
  });
}

Request Communicator::start_all_reduce_bytes(std::span<std::byte> values, Reduction reduction) noexcept {
  if (shares_data(*context_)) {
    return start_shared(*context_, job::Wait::all_reduce, SharedCollective::all_reduce(*context_, values, reduction));
  }
  return start_collective(*context_, job::Wait::all_reduce,
                          [&](Schedule& schedule) { write_all_reduce(schedule, *context_, values, reduction); });
}

Request Communicator::start_scan_bytes(std::span<std::byte> values, Reduction reduction, bool exclusive) noexcept {
  return start_collective(*context_, job::Wait::scan, [&](Schedule& schedule) {
    if (!exclusive) return write_scan(schedule, *context_, values, reduction);
    const auto sum = schedule.scratch(values.size());
    if (!values.empty()) std::memcpy(sum.data(), values.data(), values.size());
    write_scan(schedule, *context_, sum, reduction);
    const int me = context_->rank();
    if (me + 1 < context_->size()) schedule.send(sum, me + 1);
    if (me > 0) schedule.receive(values, me - 1);
  });
}

Status Communicator::barrier() noexcept {
  if (context_->board() != nullptr) {
    auto barrier = SharedCollective::barrier(*context_);
    return context_->runtime().play(barrier, job::Wait::barrier);
  }
  return start_barrier().wait().status;
}

Status Communicator::broadcast_bytes(std::span<std::byte> bytes, Rank root) noexcept {
  if (shares_data(*context_)) {
    auto broadcast = broadcast_of(*context_, bytes, root.value());
    return context_->runtime().play(broadcast, job::Wait::broadcast);
  }
  return start_broadcast_bytes(bytes, root).wait().status;
}

Status Communicator::all_reduce_bytes(std::span<std::byte> values, Reduction reduction) noexcept {
  if (shares_data(*context_)) {
    auto all_reduce = SharedCollective::all_reduce(*context_, values, reduction);
    return context_->runtime().play(all_reduce, job::Wait::all_reduce);
  }
  return start_all_reduce_bytes(values, reduction).wait().status;
}

}  // namespace tonari
