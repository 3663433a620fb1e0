#include "message/requests.hpp"
#include "message/runtime.hpp"
#include "message/schedule.hpp"

#include <tonari/message.hpp>

#include <bit>
#include <new>

// Each collective writes down a Schedule; the blocking form waits for the started one.
namespace tonari {

using message::Context;
using message::Operation;
using message::Reduction;
using message::Schedule;

namespace {

// `write` writes the schedule down.
template <class Write>
Request start(Context& context, Write&& write) noexcept {
  message::Runtime& runtime = context.runtime();
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(Operation::Kind::collective, context);
    operation->schedule = std::make_unique<Schedule>(context);
    write(*operation->schedule);
  } catch (const std::bad_alloc&) {
    if (operation != nullptr) runtime.free_operation(operation);
    return message::Requests::completed(Status::no_memory);
  }
  (void)runtime.advance(*operation);  // its first messages go out now
  return message::Requests::started(operation);
}

// A collective that this rank got wrong has been one nevertheless: the other ranks may have begun it, and the next one
// must be the next one on all.
Request refuse(Context& context) noexcept {
  (void)context.next_collective();
  return message::Requests::completed(Status::invalid);
}

bool is_rank(const Context& context, int rank) noexcept { return rank >= 0 && rank < context.size(); }

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

// The same tree towards rank 0. A rank folds its neighbours' parts in from the nearest to the farthest, so that
// operands stay in the order of ranks, and the shape depends on the number of ranks alone.
void write_reduce(Schedule& schedule, const Context& context, std::span<std::byte> values, Reduction reduction) {
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

}  // namespace

Request Communicator::start_barrier() noexcept {
  return start(*context_, [this](Schedule& schedule) {
    const int me = context_->rank();
    const int size = context_->size();
    for (int distance = 1; distance < size; distance *= 2) {  // dissemination
      schedule.send({}, (me + distance) % size);
      schedule.receive({}, (me - distance % size + size) % size);
      schedule.next_round();
    }
  });
}

Request Communicator::start_broadcast_bytes(std::span<std::byte> bytes, int root) noexcept {
  if (!is_rank(*context_, root)) return refuse(*context_);
  return start(*context_, [&](Schedule& schedule) { write_broadcast(schedule, *context_, bytes, root); });
}

Request Communicator::start_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, int root) noexcept {
  if (!is_rank(*context_, root)) return refuse(*context_);
  const bool is_root = context_->rank() == root;
  const auto size = static_cast<std::size_t>(context_->size());
  const bool fits = !is_root || all.size() / size >= mine.size();
  return start(*context_, [&](Schedule& schedule) {
    if (!fits) schedule.fail(Status::invalid);  // what the others send is received and dropped, so that they get on
    schedule.send(mine, root);
    for (std::size_t rank = 0; is_root && rank < size; ++rank) {
      const auto part = fits ? all.subspan(rank * mine.size(), mine.size()) : std::span<std::byte>();
      schedule.receive(part, static_cast<int>(rank));
    }
  });
}

Request Communicator::start_all_reduce_bytes(std::span<std::byte> values, Reduction reduction) noexcept {
  return start(*context_, [&](Schedule& schedule) {
    write_reduce(schedule, *context_, values, reduction);
    write_broadcast(schedule, *context_, values, 0);
  });
}

Status Communicator::barrier() noexcept {
  Request request = start_barrier();
  return message::Requests::wait(request, job::Wait::barrier);
}

Status Communicator::broadcast_bytes(std::span<std::byte> bytes, int root) noexcept {
  Request request = start_broadcast_bytes(bytes, root);
  return message::Requests::wait(request, job::Wait::broadcast);
}

Status Communicator::gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, int root) noexcept {
  Request request = start_gather_bytes(mine, all, root);
  return message::Requests::wait(request, job::Wait::gather);
}

Status Communicator::all_reduce_bytes(std::span<std::byte> values, Reduction reduction) noexcept {
  Request request = start_all_reduce_bytes(values, reduction);
  return message::Requests::wait(request, job::Wait::all_reduce);
}

}  // namespace tonari
