#include "message/collectives.hpp"

#include <tonari/message.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

// Barrier, broadcast and the reductions: through shared memory, or each written down as a Schedule, where the blocking
// form waits for the started one.
namespace tonari {

using message::Context;
using message::is_rank;
using message::Reduction;
using message::refuse;
using message::Schedule;
using message::SharedCollective;
using message::shares_data;
using message::start_collective;
using message::start_shared;

namespace {

// Rank as seen from the root: the root is 0.
int from_root(const Context& context, int rank, int root) noexcept {
  return (rank - root + context.size()) % context.size();
}
int to_rank(const Context& context, int relative, int root) noexcept { return (relative + root) % context.size(); }

// Binomial tree: rank r (seen from the root) has its data from r without its lowest set bit, and passes them on to r +
// bit for every lower bit, farthest first.
void write_broadcast(Schedule& schedule, const Context& context, std::span<std::byte> bytes, int root) {
  const auto me = static_cast<unsigned>(from_root(context, context.rank(), root));
  const auto size = static_cast<unsigned>(context.size());
  if (me != 0) {
    schedule.receive(bytes, to_rank(context, static_cast<int>(me & (me - 1)), root));
    schedule.next_round();
  }
  const unsigned below = me == 0 ? std::bit_ceil(size) : me & -me;
  for (unsigned bit = below >> 1; bit != 0; bit >>= 1) {
    if (me + bit < size) schedule.send(bytes, to_rank(context, static_cast<int>(me + bit), root));
  }
}

// The same tree towards rank 0, in place. A rank folds its neighbours' parts in from the nearest to the farthest, so
// that operands stay in the order of ranks.
void write_reduce_to_0(Schedule& schedule, const Context& context, std::span<std::byte> values, Reduction reduction) {
  const auto me = static_cast<unsigned>(context.rank());
  const auto size = static_cast<unsigned>(context.size());
  for (unsigned bit = 1; bit < size; bit <<= 1) {
    if ((me & bit) != 0) {
      schedule.send(values, static_cast<int>(me - bit));
      schedule.next_round();
      return;
    }
    if (me + bit >= size) continue;
    const auto part = schedule.scratch(values.size());
    schedule.receive(part, static_cast<int>(me + bit));
    schedule.fold(values, part, reduction);
    schedule.next_round();
  }
}

// values = part op values
void fold_before(Schedule& schedule, std::span<std::byte> values, std::span<std::byte> part, Reduction reduction) {
  schedule.fold(part, values, reduction);
  schedule.copy(values, part);
}

// Each rank gathers the values of all (Bruck and others 1997: in round k it has those of 2^k ranks, its own and the
// next), and combines them all in the order of ranks.
void write_all_reduce_by_gathering(Schedule& schedule, const Context& context, std::span<std::byte> values,
                                   Reduction reduction) {
  const int me = context.rank();
  const int size = context.size();
  const std::size_t bytes = values.size();
  const auto all = schedule.scratch(static_cast<std::size_t>(size) * bytes);  // from this rank's on, which wraps
  if (bytes != 0) std::memcpy(all.data(), values.data(), bytes);
  for (int have = 1; have < size; have *= 2) {
    const auto given = static_cast<std::size_t>(std::min(have, size - have)) * bytes;
    schedule.send(all.first(given), (me - have + size) % size);
    schedule.receive(all.subspan(static_cast<std::size_t>(have) * bytes, given), (me + have) % size);
    schedule.next_round();
  }
  const auto of = [&](int rank) {
    return all.subspan(static_cast<std::size_t>((rank - me + size) % size) * bytes, bytes);
  };
  schedule.copy(values, of(0));
  for (int rank = 1; rank < size; ++rank) schedule.fold(values, of(rank), reduction);
}

// Each rank combines one stretch of the values, in the order of ranks, and gives it to all: two rounds, and each rank
// moves what it must and no more.
void write_all_reduce_by_stretches(Schedule& schedule, const Context& context, std::span<std::byte> values,
                                   Reduction reduction) {
  const auto stretch = [&](int rank) {
    return message::stretch_of(values, reduction.element_bytes, static_cast<std::size_t>(rank),
                               static_cast<std::size_t>(context.size()));
  };
  const int me = context.rank();
  const auto mine = stretch(me);
  std::span<std::byte> sum;  // of the ranks before the one at hand
  for (int rank = 0; rank < context.size(); ++rank) {
    if (rank == me) {
      if (!sum.empty()) fold_before(schedule, mine, sum, reduction);
      sum = mine;
      continue;
    }
    schedule.send(stretch(rank), rank);
    const auto part = schedule.scratch(mine.size());
    schedule.receive(part, rank);
    if (!sum.empty()) {
      schedule.fold(sum, part, reduction);
    } else {
      sum = part;
    }
  }
  schedule.next_round();
  for (int rank = 0; rank < context.size(); ++rank) {
    if (rank == me) continue;
    schedule.send(mine, rank);
    schedule.receive(stretch(rank), rank);
  }
}

// After round k (Hillis, Steele 1986) a rank has combined the 2^k ranks up to itself.
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
    const int me = context_->rank();
    const int size = context_->size();
    for (int distance = 1; distance < size; distance *= 2) {  // dissemination (Hensgen, Finkel, Manber 1988)
      schedule.send({}, (me + distance) % size);
      schedule.receive({}, (me - distance % size + size) % size);
      schedule.next_round();
    }
  });
}

Request Communicator::start_broadcast_bytes(std::span<std::byte> bytes, int root) noexcept {
  if (shares_data(*context_)) {
    return start_shared(*context_, job::Wait::broadcast, broadcast_of(*context_, bytes, root));
  }
  if (!is_rank(*context_, root)) return refuse(*context_);
  return start_collective(*context_, job::Wait::broadcast,
                          [&](Schedule& schedule) { write_broadcast(schedule, *context_, bytes, root); });
}

Request Communicator::start_reduce_bytes(std::span<std::byte> values, int root, Reduction reduction) noexcept {
  if (!is_rank(*context_, root)) return refuse(*context_);
  return start_collective(*context_, job::Wait::reduce, [&](Schedule& schedule) {
    const bool in_place = context_->rank() == root && root == 0;
    const auto sum = in_place ? values : schedule.scratch(values.size());
    if (!in_place && !values.empty()) std::memcpy(sum.data(), values.data(), values.size());
    write_reduce_to_0(schedule, *context_, sum, reduction);
    if (root == 0) return;
    if (context_->rank() == 0) schedule.send(sum, root);
    if (context_->rank() == root) schedule.receive(values, 0);
  });
}

Request Communicator::start_all_reduce_bytes(std::span<std::byte> values, Reduction reduction) noexcept {
  if (shares_data(*context_)) {
    return start_shared(*context_, job::Wait::all_reduce, SharedCollective::all_reduce(*context_, values, reduction));
  }
  return start_collective(*context_, job::Wait::all_reduce, [&](Schedule& schedule) {
    constexpr std::size_t gathered_bytes_max = 4096;
    // Up to as many ranks as may have a board, all ways combine in the order of ranks, so that they round the same.
    if (context_->size() > message::ranks_on_a_board_max) {
      write_reduce_to_0(schedule, *context_, values, reduction);
      write_broadcast(schedule, *context_, values, 0);
    } else if (values.size() <= gathered_bytes_max) {
      write_all_reduce_by_gathering(schedule, *context_, values, reduction);
    } else {
      write_all_reduce_by_stretches(schedule, *context_, values, reduction);
    }
  });
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

Status Communicator::broadcast_bytes(std::span<std::byte> bytes, int root) noexcept {
  if (shares_data(*context_)) {
    auto broadcast = broadcast_of(*context_, bytes, root);
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
