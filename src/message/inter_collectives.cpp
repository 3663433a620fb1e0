#include "message/inter_collectives.hpp"

#include "message/exchanges.hpp"
#include "message/host_groups.hpp"

namespace tonari::message {

namespace {

// The member that is a rank of the other side.
int member(const Context& context, int other_rank) noexcept { return context.size() + other_rank; }

Tree tree_of(const Context& context) { return Tree::of_all(context.hosts(), context.rank(), 0); }

std::span<std::byte> nothing() noexcept { return {}; }

}  // namespace

void write_inter_barrier(Schedule& schedule, const Context& context) {
  const Tree tree = tree_of(context);
  for (const int child : tree.children) schedule.receive(nothing(), child);
  schedule.next_round();
  if (tree.parent >= 0) {
    schedule.send(nothing(), tree.parent);
  } else {
    schedule.send(nothing(), member(context, 0));
    schedule.receive(nothing(), member(context, 0));
  }
  schedule.next_round();
  write_broadcast(schedule, tree, Part(nothing()));
}

void write_inter_broadcast(Schedule& schedule, const Context& context, const Part& data, int root) {
  if (root == takes_no_part) return;
  if (root == self_is_root) return schedule.send(data, member(context, 0));
  const Tree tree = tree_of(context);
  if (tree.parent < 0) {
    schedule.receive(data, member(context, root));
    schedule.next_round();
  }
  write_broadcast(schedule, tree, data);
}

void write_inter_gather(Schedule& schedule, const Context& context, const Part& mine, const Parts& all, int root) {
  if (root == takes_no_part) return;
  if (root != self_is_root) return schedule.send(mine, member(context, root));
  for (int rank = 0; rank < context.peers().size(); ++rank) schedule.receive(all(rank), member(context, rank));
}

void write_inter_scatter(Schedule& schedule, const Context& context, const Parts& all, const Part& mine, int root) {
  if (root == takes_no_part) return;
  if (root != self_is_root) return schedule.receive(mine, member(context, root));
  for (int rank = 0; rank < context.peers().size(); ++rank) schedule.send(all(rank), member(context, rank));
}

// All messages are in one round: sides of different sizes would disagree about rounds with limited numbers of peers.
void write_inter_exchange(Schedule& schedule, const Context& context, const Parts& sent, const Parts& received) {
  const int others = context.peers().size();
  for (int distance = 0; distance < others; ++distance) {  // so that no rank is the first target of all others
    const int rank = (context.rank() + distance) % others;
    schedule.receive(received(rank), member(context, rank));
    schedule.send(sent(rank), member(context, rank));
  }
}

void write_inter_reduce(Schedule& schedule, const Context& context, Operands own, std::span<std::byte> result,
                        const detail::Reduction& reduction, int root) {
  if (root == takes_no_part) return;
  if (root == self_is_root) return schedule.receive(result, member(context, 0));
  const auto sum = schedule.scratch(context.rank() == 0 ? own.size() : 0);
  write_reduce(schedule, context, own, sum.data(), reduction, 0);
  schedule.next_round();
  if (context.rank() == 0) schedule.send(sum, member(context, root));
}

void write_inter_leaders_reduce(Schedule& schedule, const Context& context, Operands own, std::byte* result,
                                const detail::Reduction& reduction) {
  const auto sum = schedule.scratch(context.rank() == 0 ? own.size() : 0);
  write_reduce(schedule, context, own, sum.data(), reduction, 0);
  schedule.next_round();
  if (context.rank() != 0) return;
  schedule.send(sum, member(context, 0));
  schedule.receive({result, own.size()}, member(context, 0));
  schedule.next_round();
}

void write_inter_all_reduce(Schedule& schedule, const Context& context, Operands own, std::byte* result,
                            const detail::Reduction& reduction) {
  write_inter_leaders_reduce(schedule, context, own, result, reduction);
  write_broadcast(schedule, tree_of(context), Part(std::span(result, own.size())));
}

}  // namespace tonari::message
