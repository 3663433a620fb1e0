#pragma once

#include "message/message_runtime.hpp"
#include "message/requests.hpp"
#include "message/schedule.hpp"

#include <memory>
#include <new>

namespace tonari::message {

/// Starts the collective `what`, which `write(Schedule&)` writes down. Whatever it copies from the user's buffers at
/// once must be for this rank alone.
template <class Write>
Request start_collective(Context& context, job::Wait what, Write&& write) noexcept {
  MessageRuntime& runtime = context.runtime();
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(Operation::Kind::collective, context);
    operation->schedule = std::make_unique<Schedule>(context, what);
    write(*operation->schedule);
  } catch (const std::bad_alloc&) {
    const bool has_number = operation != nullptr && operation->schedule != nullptr;
    if (!has_number) (void)context.next_collective();  // it has been one nevertheless, for the ranks that begin it
    if (operation != nullptr) runtime.free_operation(operation);
    return Requests::completed(Status::no_memory);
  }
  (void)runtime.advance(*operation);  // its first messages go out now
  return Requests::started(operation);
}

/// True when broadcasts and all-reduces of these ranks go through shared memory: without direct copies they cannot
/// when they are long, nor where buffers may be out of others' reach, and it must not depend on a length, which a
/// program may get wrong on one rank.
inline bool shares_data(const Context& context) noexcept {
  fabric::Engine& engine = context.runtime().engine();
  return context.board() != nullptr && engine.copies_directly() && !engine.session().has_paged();
}

/// Starts one through shared memory.
inline Request start_shared(Context& context, job::Wait what, SharedCollective collective) noexcept {
  if (collective.step() == fabric::Step::done) return Requests::completed(collective.status());
  MessageRuntime& runtime = context.runtime();
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(Operation::Kind::collective, context);
    operation->schedule = std::make_unique<Schedule>(context, what, collective);
  } catch (const std::bad_alloc&) {
    if (operation != nullptr) runtime.free_operation(operation);
    (void)runtime.play(collective, what);  // the others are with it already
    return Requests::completed(collective.status());
  }
  return Requests::started(operation);
}

/// A collective that this rank got wrong has been one nevertheless: the other ranks may have begun it, and the next one
/// must be the next one on all.
inline Request refuse(Context& context) noexcept {
  (void)context.next_collective();
  return Requests::completed(Status::invalid);
}

inline bool is_rank(const Context& context, int rank) noexcept { return rank >= 0 && rank < context.size(); }

}  // namespace tonari::message
