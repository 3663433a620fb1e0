#include "message/collectives.hpp"

#include "message/exchanges.hpp"
#include "message/reductions.hpp"

#include <algorithm>
#include <cstring>

// Barrier, broadcast and all-reduce: through shared memory, or recorded as a Schedule. Their blocking forms wait for
// the started forms, or play the collective without an operation.
namespace tonari::message {

using detail::Reduction;

namespace {

// Whether this rank has no others to wait for. On an inter-communicator even a side with one rank must count its
// collectives, since both sides number them alike.
bool is_alone(const Context& context) noexcept { return context.size() == 1 && !context.is_inter(); }

// Dissemination (Hensgen, Finkel, Manber 1988).
void write_dissemination(Rounds& rounds, const Circle& circle) {
  for (std::size_t distance = 1; distance < circle.size(); distance *= 2) {
    rounds.send(std::span<const std::byte>{}, circle.after(distance));
    rounds.receive(std::span<std::byte>{}, circle.before(distance));
    rounds.next_round();
  }
}

SharedCollective shared_broadcast(Context& context, std::span<std::byte> bytes, int root) noexcept {
  return is_rank(context, root) ? SharedCollective::broadcast(context, bytes, root)
                                : SharedCollective::refused(context);
}

// A broadcast through shared memory of data with gaps, by way of a packed copy.
Request start_packed_broadcast(Context& context, const Part& data, int root) noexcept {
  MessageRuntime& runtime = context.runtime();
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(Operation::Kind::collective, context);
    auto schedule = std::make_unique<Schedule>(context, job::Wait::broadcast);
    const auto packed = schedule->scratch(data.bytes());
    if (context.rank() == root) {
      Part(data).pack(0, packed.data(), packed.size());
    } else {
      schedule->copy(data, Part(packed));
    }
    schedule->share(shared_broadcast(context, packed, root));
    operation->schedule.reset(schedule.release());
  } catch (const std::bad_alloc&) {
    if (operation != nullptr) runtime.free_operation(operation);
    auto refused = SharedCollective::refused(context);  // the other ranks begin it
    (void)runtime.play(refused, job::Wait::broadcast);
    return Requests::completed(Status::no_memory);
  }
  (void)runtime.advance(*operation);
  return Requests::started(operation);
}

}  // namespace

Request PersistentCollective::start() noexcept {
  MessageRuntime& runtime = context_.runtime();
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(Operation::Kind::collective, context_);
  } catch (const std::bad_alloc&) {
    return Requests::completed(Status::no_memory);
  }
  schedule_->rewind();
  operation->schedule.reset(schedule_.get());
  (void)runtime.advance(*operation);
  return Requests::started(operation);
}

Request start_shared(Context& context, job::Wait what, SharedCollective collective) noexcept {
  const bool is_over = collective.step() == fabric::Step::done;
  if (is_over && !collective.needs_messages()) return Requests::completed(collective.status());
  MessageRuntime& runtime = context.runtime();
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(Operation::Kind::collective, context);
    operation->schedule.reset(new Schedule(context, what));
    operation->schedule->share(collective);
  } catch (const std::bad_alloc&) {
    if (operation != nullptr) runtime.free_operation(operation);
    return Requests::completed(runtime.play(collective, what));  // the other ranks have begun it already
  }
  if (is_over) [[unlikely]]
    (void)runtime.advance(*operation);  // sends its first messages now
  return Requests::started(operation);
}

void write_barrier(Rounds& rounds, const Members& members) {
  const Tree tree = Tree::of_group(members.hosts(), members.rank());
  for (const int child : tree.children) rounds.receive(std::span<std::byte>{}, child);
  rounds.next_round();
  if (tree.parent < 0) {
    write_dissemination(rounds, Circle::leaders(members.hosts(), members.rank()));
  } else {
    rounds.send(std::span<const std::byte>{}, tree.parent);
    rounds.next_round();
  }
  write_broadcast(rounds, tree, Part(std::span<std::byte>{}));
}

Status barrier(Context& context) noexcept {
  if (is_alone(context)) return Status::ok;
  if (context.board() == nullptr) return start_barrier(context).wait().status;
  auto barrier = SharedCollective::barrier(context);
  return context.runtime().play(barrier, job::Wait::barrier);
}

Request start_barrier(Context& context) noexcept {
  if (context.board() != nullptr) {
    return start_shared(context, job::Wait::barrier, SharedCollective::barrier(context));
  }
  return start_collective(context, job::Wait::barrier, [&](Schedule& schedule) { write_barrier(schedule, context); });
}

Status broadcast(Context& context, const Part& data, int root) noexcept {
  const auto bytes = data.dense();
  if (!bytes || !shares_data(context)) return start_broadcast(context, data, root).wait().status;
  auto broadcast = shared_broadcast(context, *bytes, root);
  return context.runtime().play(broadcast, job::Wait::broadcast);
}

Request start_broadcast(Context& context, const Part& data, int root) noexcept {
  if (shares_data(context)) {
    const auto bytes = data.dense();
    if (!bytes) return start_packed_broadcast(context, data, root);
    return start_shared(context, job::Wait::broadcast, shared_broadcast(context, *bytes, root));
  }
  if (!is_rank(context, root)) return refuse(context);
  return start_collective(context, job::Wait::broadcast,
                          [&](Schedule& schedule) { write_broadcast(schedule, context, data, root); });
}

Status all_reduce(Context& context, const std::byte* own, std::span<std::byte> result,
                  const Reduction& reduction) noexcept {
  if (is_alone(context)) {
    if (own != result.data() && !result.empty()) std::memcpy(result.data(), own, result.size());
    return Status::ok;
  }
  if (!shares_data(context, reduction)) return start_all_reduce(context, own, result, reduction).wait().status;
  auto all_reduce = SharedCollective::all_reduce(context, own, result, reduction);
  return context.runtime().play(all_reduce, job::Wait::all_reduce);
}

Request start_all_reduce(Context& context, const std::byte* own, std::span<std::byte> result,
                         const Reduction& reduction) noexcept {
  if (shares_data(context, reduction)) {
    return start_shared(context, job::Wait::all_reduce, SharedCollective::all_reduce(context, own, result, reduction));
  }
  return start_collective(context, job::Wait::all_reduce, [&](Schedule& schedule) {
    write_all_reduce(schedule, context, {own, result.size()}, result.data(), reduction);
  });
}

}  // namespace tonari::message
