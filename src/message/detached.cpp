#include "message/detached.hpp"

#include "message/layout_cursor.hpp"
#include "message/message_runtime.hpp"
#include "message/schedule.hpp"

#include <sched.h>

#include <mutex>
#include <new>

// Detached operations, and foreign ones.
namespace tonari::message {

using fabric::Step;

bool MessageRuntime::detach(Operation& operation) noexcept {
  adopt(operation);  // from here on no other thread advances it
  {
    const std::lock_guard guard(lock_);
    try {
      detached_.add(operation);
    } catch (const std::bad_alloc&) {
      return false;
    }
    if (operation.owner.is_stepwise.load(std::memory_order_relaxed)) unlist_as_stepwise(operation);
    operation.signals.is_awaited.store(false, std::memory_order_relaxed);
    operation.waking = {.sleeper = nullptr, .changes = &changes_of_detached_};
    make_due(operation);  // it may have changed before
  }
  run_deferred_work();
  return true;
}

// Called under the lock.
void MessageRuntime::make_due(Operation& operation) noexcept {
  if (!detached_.make_due(operation)) return;
  if (operation.call.kind == Operation::Kind::receive) due_receives_.fetch_add(1, std::memory_order_relaxed);
  engine_.handlers().add_deferred_work();
}

// Called under the lock.
void MessageRuntime::count_not_due(const Operation& operation) noexcept {
  if (operation.call.kind == Operation::Kind::receive)
    due_receives_.fetch_sub(1, std::memory_order_release);  // (1) after its payload
  engine_.handlers().finish_deferred_work();
}

void MessageRuntime::run_deferred_work() noexcept {
  while (Operation* const operation = take_due()) settle_due(*operation, advance(*operation));
}

Operation* MessageRuntime::take_due() noexcept {
  const std::lock_guard guard(lock_);
  Operation* const operation = detached_.take_due();
  if (operation != nullptr) {
    operation->owner.is_being_advanced = true;
    operation->owner.thread = this_thread();
  }
  return operation;
}

// Called by the thread that has advanced it.
void MessageRuntime::settle_due(Operation& operation, Step step) noexcept {
  std::shared_ptr<Context> context;  // ends after the lock is released
  bool is_blocked = false;
  {
    const std::lock_guard guard(lock_);
    operation.owner.is_being_advanced = false;
    if (step == Step::done) {
      if (detached_.forget_due(operation)) count_not_due(operation);  // it became due again meanwhile
      context = detached_.remove(operation);
    }
    is_blocked = step == Step::retry && detached_.block(operation);
    if (is_blocked) held_count_.add();
    count_not_due(operation);
  }
  if (step == Step::done) delete &operation;
  if (!is_blocked) return;
  // No head announces room. A thread that waits polls soon; if none does, the service thread must.
  engine_.wake_self();
  engine_.session().arena().ring_service_doorbell(self_);
  ::sched_yield();
}

// Called by the holder of the progress lock, in each poll while operations are blocked.
void MessageRuntime::retry_blocked() noexcept {
  const std::lock_guard guard(lock_);
  detached_.take_blocked([this](Operation& operation) {
    held_count_.remove();
    make_due(operation);
  });
}

void MessageRuntime::finish_due_receives_slow() noexcept {
  for (;;) {
    run_deferred_work();
    if (due_receives_.load(std::memory_order_acquire) == 0) return;  // pairs with (1)
    ::sched_yield();                                                 // another thread copies
  }
}

// Called when the rank has left its job. No thread and no rank uses the operation any more, unless the network still
// reads the user's buffer, and will count that in the operation: then it is not freed.
void MessageRuntime::abandon_detached(Operation& operation) noexcept {
  const bool has_kept =
      operation.progress.state.load(std::memory_order_relaxed) == State::matched && operation.head.kind == Kind::kept;
  if (has_kept) delete[] operation.head.as<Kept>().payload;
  if (operation.sending.network_reads.load(std::memory_order_acquire) == 0) delete &operation;
}

void MessageRuntime::complete_foreign(Operation& operation, Status status) noexcept {
  complete(operation, status);  // from here on it may be freed
  // The holder of the progress lock sees the new state in the poll before it sleeps, or is woken: see HeldBack.
  held_count_.add();
  held_count_.remove();
  engine_.wake_self();
}

}  // namespace tonari::message
