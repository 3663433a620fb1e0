#pragma once

#include "message/message_runtime.hpp"
#include "message/requests.hpp"
#include "message/schedule.hpp"

#include <new>

namespace tonari::message {

/// Starts the collective `what`, which `write(Schedule&)` records. Data that `write` copies from the user's buffers
/// directly must stay on this rank.
template <class Write>
Request start_collective(Context& context, job::Wait what, Write&& write) noexcept {
  MessageRuntime& runtime = context.runtime();
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(Operation::Kind::collective, context);
    operation->schedule.reset(new Schedule(context, what));
    write(*operation->schedule);
  } catch (const std::bad_alloc&) {
    const bool has_number = operation != nullptr && operation->schedule != nullptr;
    if (!has_number) (void)context.next_collective();  // it still counts as a collective, for the ranks that begin it
    if (operation != nullptr) runtime.free_operation(operation);
    return Requests::completed(Status::no_memory);
  }
  (void)runtime.advance(*operation);  // sends its first messages now
  return Requests::started(operation);
}

/// True if broadcasts and all-reduces of these ranks go through shared memory. Long ones need direct copies between
/// buffers that are not paged. The decision must not depend on the length, which a program may get wrong on one rank,
/// so short ones follow the same rule.
inline bool shares_data(const Context& context) noexcept {
  fabric::Engine& engine = context.runtime().engine();
  return context.board() != nullptr && engine.copies_directly() && !engine.session().has_paged();
}

/// Starts a collective through shared memory.
inline Request start_shared(Context& context, job::Wait what, SharedCollective collective) noexcept {
  if (collective.step() == fabric::Step::done) return Requests::completed(collective.status());
  MessageRuntime& runtime = context.runtime();
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(Operation::Kind::collective, context);
    operation->schedule.reset(new Schedule(context, what, collective));
  } catch (const std::bad_alloc&) {
    if (operation != nullptr) runtime.free_operation(operation);
    (void)runtime.play(collective, what);  // the other ranks have begun it already
    return Requests::completed(collective.status());
  }
  return Requests::started(operation);
}

/// Refuses a collective that this rank called with invalid arguments. It still counts: the other ranks may have begun
/// it, and the next collective must have the same number on all ranks.
inline Request refuse(Context& context) noexcept {
  (void)context.next_collective();
  return Requests::completed(Status::invalid);
}

inline bool is_rank(const Context& context, int rank) noexcept { return rank >= 0 && rank < context.size(); }

}  // namespace tonari::message
