#pragma once

#include "message/message_runtime.hpp"
#include "message/part.hpp"
#include "message/requests.hpp"
#include "message/schedule.hpp"

#include <exception>
#include <memory>
#include <new>
#include <utility>

// Starting collectives. The write_...() functions of exchanges.hpp and reductions.hpp record the messages and the local
// work of each.
namespace tonari::message {

/// Starts the collective `what`, which `write(Schedule&)` records. Data that `write` copies from the user's buffers
/// directly must stay on this rank. If `write` throws, the collective fails on this rank, and the others wait for it.
template <class Write>
Request start_collective(Context& context, job::Wait what, Write&& write) noexcept {
  MessageRuntime& runtime = context.runtime();
  const std::uint32_t number = context.next_collective();  // also without memory: the other ranks begin it
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(Operation::Kind::collective, context);
    operation->schedule.reset(new Schedule(context, what, number));
    write(*operation->schedule);
  } catch (const std::exception& error) {
    const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    if (operation != nullptr) runtime.free_operation(operation);
    return Requests::completed(no_memory ? Status::no_memory : Status::invalid);
  }
  (void)runtime.advance(*operation);  // sends its first messages now
  return Requests::started(operation);
}

/// A collective that can be started many times. All ranks prepare their persistent collectives in the same order, and
/// may start them in any order.
///
/// Life:    must outlive the requests that start() returns.
/// Threads: one at a time.
class PersistentCollective {
 public:
  /// `write(Schedule&)` records the collective; it must copy nothing itself. Throws std::bad_alloc.
  template <class Write>
  PersistentCollective(Context& context, job::Wait what, Write&& write)
      : context_(context), schedule_(new Schedule(context, what, context.next_persistent())) {
    schedule_->persist();
    write(*schedule_);
  }
  /// Starts it once more. The request of the last start must be complete.
  Request start() noexcept;

 private:
  Context& context_;
  std::unique_ptr<Schedule> schedule_;
};

/// True if broadcasts and all-reduces of these ranks go through shared memory. Long ones need direct copies between
/// buffers that are not paged. The decision must not depend on the length, which a program may get wrong on one rank,
/// so short ones follow the same rule.
inline bool shares_data(const Context& context) noexcept {
  fabric::Engine& engine = context.runtime().engine();
  return context.board() != nullptr && engine.copies_directly() && !engine.session().has_paged();
}
/// The same for a reduction. Boards have read-only operands, so that each must be the right operand of a fold.
inline bool shares_data(const Context& context, const detail::Reduction& reduction) noexcept {
  return reduction.into != detail::Into::right && shares_data(context);
}

/// Starts a collective through shared memory.
Request start_shared(Context& context, job::Wait what, SharedCollective collective) noexcept;

/// Refuses a collective that this rank called with invalid arguments. It still counts: the other ranks may have begun
/// it, and the next collective must have the same number on all ranks.
inline Request refuse(Context& context) noexcept {
  (void)context.next_collective();
  return Requests::completed(Status::invalid);
}

inline bool is_rank(const Context& context, int rank) noexcept { return rank >= 0 && rank < context.size(); }

// Collectives that use shared memory if possible. Blocking and started forms match.

Status barrier(Context& context) noexcept;
Request start_barrier(Context& context) noexcept;
/// Records a barrier by messages.
void write_barrier(Rounds& rounds, const Members& members);

/// The root's data go to all ranks. If `root` is no rank, this rank refuses to take part.
Status broadcast(Context& context, const Part& data, int root) noexcept;
Request start_broadcast(Context& context, const Part& data, int root) noexcept;

/// Combines all ranks' `own` into each rank's `result`, which has the same length. They may be the same memory, but not
/// overlap otherwise.
Status all_reduce(Context& context, const std::byte* own, std::span<std::byte> result,
                  const detail::Reduction& reduction) noexcept;
Request start_all_reduce(Context& context, const std::byte* own, std::span<std::byte> result,
                         const detail::Reduction& reduction) noexcept;

}  // namespace tonari::message
