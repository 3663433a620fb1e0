#include "message/reductions.hpp"

#include "message/exchanges.hpp"
#include "message/host_collectives.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace tonari::message {

using detail::Into;
using detail::Reduction;

namespace {

// Operands of a step, or its result.
struct Values {
  std::span<std::byte> bytes;
  bool is_writable;  // a fold may replace them
};

// A reduction that is being recorded.
class Recorder {
 public:
  // `room`: memory of the result that is no operand, and may be used before the result is there. May be null.
  Recorder(Rounds& rounds, const Reduction& reduction, std::size_t bytes, std::byte* room) noexcept
      : rounds_(rounds), reduction_(reduction), room_(room, room == nullptr ? 0 : bytes) {}

  Rounds& rounds() const noexcept { return rounds_; }

  // Returns memory for operands. The first is in the result, so that the result need not be copied there.
  std::span<std::byte> memory(std::size_t bytes) {
    if (room_.size() < bytes || bytes == 0) return rounds_.scratch(bytes);
    return std::exchange(room_, {}).first(bytes);
  }

  // Returns operands that `from` sends in this round.
  Values receive(std::size_t bytes, int from) {
    const Values part{memory(bytes), true};
    rounds_.receive(part.bytes, from);
    return part;
  }

  // Adds the step left op right. The result replaces one of the two, or a copy of one.
  Values combine(Values left, Values right) {
    if (reduction_.into == Into::right) return fold(writable(right), left);
    if (reduction_.into == Into::any && !left.is_writable && right.is_writable) return fold(right, left);
    return fold(writable(left), right);
  }

  void copy_to(std::byte* result, const Values& values) {
    if (result != values.bytes.data()) rounds_.copy({result, values.bytes.size()}, values.bytes);
  }

 private:
  Values fold(Values into, Values from) {
    rounds_.fold(into.bytes, from.bytes, reduction_);
    return into;
  }
  Values writable(Values values) {
    if (values.is_writable) return values;
    const Values copy{memory(values.bytes.size()), true};
    rounds_.copy(copy.bytes, values.bytes);
    return copy;
  }

  Rounds& rounds_;
  const Reduction& reduction_;
  std::span<std::byte> room_;
};

Values values_of(Operands own, const std::byte* result) noexcept {
  return {{const_cast<std::byte*>(own.data()), own.size()}, own.data() == result};
}
// Returns the result's memory if it is separate from the operands.
std::byte* room_in(Operands own, std::byte* result) noexcept { return own.data() == result ? nullptr : result; }

// The host groups if combining within each host first keeps the operands in the order of ranks, or if the order does
// not matter; otherwise each rank alone.
class HostsInOrder {
 public:
  HostsInOrder(const Members& members, const Reduction& reduction) : hosts_(members.hosts()) {
    const bool may_group = reduction.into == Into::any || hosts_.in_order();
    if (!may_group) alone_ = HostGroups::each_alone(members.size());
  }
  [[nodiscard]] const HostGroups& groups() const noexcept { return alone_ ? *alone_ : hosts_; }

 private:
  const HostGroups& hosts_;
  std::optional<HostGroups> alone_;
};

// Combines the values of this rank and of the ranks below it in a tree, and sends them to its parent.
Values write_tree_reduce(Recorder& recorder, const Tree& tree, Values sum) {
  Rounds& rounds = recorder.rounds();
  for (const int child : tree.children) {
    sum = recorder.combine(sum, recorder.receive(sum.bytes.size(), child));
  }
  rounds.next_round();
  if (tree.parent < 0) return sum;
  rounds.send(sum.bytes, tree.parent);
  rounds.next_round();
  return sum;
}

// Each rank gathers the values of all (Bruck et al. 1997: in round k it has the values of 2^k ranks, its own and the
// next ones), then combines them in the order of ranks.
Values write_all_reduce_by_gathering(Recorder& recorder, const Circle& circle, const Values& own) {
  Rounds& rounds = recorder.rounds();
  const std::size_t size = circle.size();
  const std::size_t bytes = own.bytes.size();
  const auto all = rounds.scratch(size * bytes);  // starts with this rank's values and wraps around
  rounds.copy(all.first(bytes), own.bytes);
  rounds.next_round();
  for (std::size_t have = 1; have < size; have *= 2) {
    const auto given = std::min(have, size - have) * bytes;
    rounds.send(all.first(given), circle.before(have));
    rounds.receive(all.subspan(have * bytes, given), circle.after(have));
    rounds.next_round();
  }
  const auto of = [&](std::size_t member) {
    return Values{all.subspan((member + size - circle.position()) % size * bytes, bytes), true};
  };
  Values sum = of(0);
  for (std::size_t member = 1; member < size; ++member) sum = recorder.combine(sum, of(member));
  return sum;
}

// Sends each member its stretch of this rank's values, and combines the stretches that the members send, in the order
// of ranks.
template <class StretchOf>
Values write_combined_stretch(Recorder& recorder, const Circle& circle, const StretchOf& stretch_of, bool is_writable) {
  Rounds& rounds = recorder.rounds();
  const Values mine{stretch_of(circle.position()), is_writable};
  Values sum{};
  for (std::size_t member = 0; member < circle.size(); ++member) {
    Values part = mine;
    if (member != circle.position()) {
      rounds.send(stretch_of(member), circle.at(member));
      part = recorder.receive(mine.bytes.size(), circle.at(member));
    }
    sum = member == 0 ? part : recorder.combine(sum, part);
  }
  rounds.next_round();
  return sum;
}

// Each rank combines one stretch of the values and sends it to all. Two rounds; each rank transfers the minimum.
void write_all_reduce_by_stretches(Rounds& rounds, const Circle& circle, const Values& own, std::span<std::byte> result,
                                   const Reduction& reduction) {
  const auto stretch_in = [&](std::span<std::byte> values) {
    return [&reduction, &circle, values](std::size_t member) {
      return stretch_of(values, reduction.element_bytes, member, circle.size());
    };
  };
  const auto result_of = stretch_in(result);
  const auto mine = result_of(circle.position());
  Recorder recorder(rounds, reduction, mine.size(), own.bytes.data() == result.data() ? nullptr : mine.data());
  const Values sum = write_combined_stretch(recorder, circle, stretch_in(own.bytes), own.is_writable);
  recorder.copy_to(mine.data(), sum);
  rounds.next_round();
  for (std::size_t member = 0; member < circle.size(); ++member) {
    if (member == circle.position()) continue;
    rounds.send(mine, circle.at(member));
    rounds.receive(result_of(member), circle.at(member));
  }
  rounds.next_round();
}

std::span<std::byte> span_of(const std::byte* first, std::size_t bytes) noexcept {
  return {const_cast<std::byte*>(first), bytes};
}

}  // namespace

void write_reduce(Rounds& rounds, const Members& members, Operands own, std::byte* result, const Reduction& reduction,
                  int root) {
  const bool is_root = members.rank() == root;
  const int top = reduction.into == Into::any ? root : 0;  // of the tree: the order of ranks begins with rank 0
  const bool is_top = members.rank() == top;
  const bool in_place = is_root && own.data() == result;
  Recorder recorder(rounds, reduction, own.size(), is_top && is_root && !in_place ? result : nullptr);
  const HostsInOrder hosts(members, reduction);
  const Tree tree = Tree::of_all(hosts.groups(), members.rank(), top);
  const Values sum = write_tree_reduce(recorder, tree, {span_of(own.data(), own.size()), in_place});
  if (is_top && is_root) return recorder.copy_to(result, sum);
  if (is_top) rounds.send(sum.bytes, root);
  if (is_root) rounds.receive({result, own.size()}, top);
}

// Each host combines its own values, one rank per host combines the values of all hosts, and the other ranks receive
// the result from it. Up to the number of ranks that may use a board, all ways combine in the same order, so that
// rounding is the same.
void write_all_reduce(Rounds& rounds, const Members& members, Operands own, std::byte* result,
                      const Reduction& reduction) {
  constexpr std::size_t gathered_bytes_max = 4096;
  const HostsInOrder hosts(members, reduction);
  const HostGroups& groups = hosts.groups();
  const bool is_large = members.size() > ranks_on_a_board_max;
  const Tree tree = is_large ? Tree::of_all(groups, members.rank(), 0) : Tree::of_group(groups, members.rank());
  const std::span<std::byte> all{result, own.size()};
  Recorder recorder(rounds, reduction, own.size(), tree.children.empty() ? nullptr : room_in(own, result));
  const Values sum = write_tree_reduce(recorder, tree, values_of(own, result));
  if (tree.parent < 0 && !is_large && groups.count() > 1) {
    const Circle leaders = Circle::leaders(groups, members.rank());
    if (own.size() <= gathered_bytes_max) {
      recorder.copy_to(result, write_all_reduce_by_gathering(recorder, leaders, sum));
    } else {
      write_all_reduce_by_stretches(rounds, leaders, sum, all, reduction);
    }
  } else if (tree.parent < 0) {
    recorder.copy_to(result, sum);
  }
  rounds.next_round();
  write_broadcast(rounds, tree, Part(all));
}

// After round k (Hillis, Steele 1986) a rank has combined the values of the 2^k ranks up to and including itself. The
// operands of an exclusive scan in place stay until the end, because the result is received while the sum is sent.
void write_scan(Rounds& rounds, const Members& members, Operands own, std::byte* result, const Reduction& reduction,
                bool exclusive) {
  const int me = members.rank();
  Values sum = values_of(own, exclusive ? nullptr : result);
  Recorder recorder(rounds, reduction, own.size(), exclusive || me == 0 ? nullptr : room_in(own, result));
  for (int distance = 1; distance < members.size(); distance *= 2) {
    if (me + distance < members.size()) rounds.send(sum.bytes, me + distance);
    if (me >= distance) sum = recorder.combine(recorder.receive(own.size(), me - distance), sum);
    rounds.next_round();
  }
  if (!exclusive) return recorder.copy_to(result, sum);
  if (me + 1 < members.size()) rounds.send(sum.bytes, me + 1);
  if (me > 0) rounds.receive({result, own.size()}, me - 1);
}

// With many ranks, the result is combined as a whole and then scattered.
void write_reduce_scatter(Rounds& rounds, const Members& members, const std::byte* own,
                          std::span<const std::size_t> elements, std::byte* result, const Reduction& reduction) {
  const auto me = static_cast<std::size_t>(members.rank());
  std::vector<std::size_t> starts{0};  // in bytes
  for (const std::size_t count : elements) starts.push_back(starts.back() + count * reduction.element_bytes);
  const auto stretch_in = [&starts](const std::byte* values) {
    return [&starts, values](std::size_t member) {
      return span_of(values + starts[member], starts[member + 1] - starts[member]);
    };
  };
  const std::span<std::byte> mine{result, starts[me + 1] - starts[me]};
  if (members.size() <= ranks_on_a_board_max) {
    Recorder recorder(rounds, reduction, mine.size(), own == result ? nullptr : result);
    recorder.copy_to(
        result, write_combined_stretch(recorder, Circle::all(members.size(), members.rank()), stretch_in(own), false));
    return;
  }
  const auto all = rounds.scratch(me == 0 ? starts.back() : 0);
  write_reduce(rounds, members, {own, starts.back()}, all.data(), reduction, 0);
  rounds.next_round();
  const auto part_of = stretch_in(all.data());
  const Part part(mine);
  write_scatter(
      rounds, members, [&](int rank) { return Part(part_of(static_cast<std::size_t>(rank))); }, &part, 0);
}

}  // namespace tonari::message
