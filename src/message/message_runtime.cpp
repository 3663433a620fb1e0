#include "message/message_runtime.hpp"

#include "message/layout_cursor.hpp"
#include "message/schedule.hpp"
#include "message/waiting.hpp"

#include <algorithm>
#include <mutex>
#include <new>

namespace tonari::message {

using fabric::Head;
using fabric::Step;

namespace {

// These two are called under the lock.
bool is_own(const Operation* operation) noexcept {
  operation_looks.add();
  return operation->owner.thread == this_thread();
}
bool is_own_and_unfinished(const Operation& operation) noexcept {
  return is_own(&operation) && operation.progress.state.load(std::memory_order_relaxed) != State::complete;
}

}  // namespace

MessageRuntime::MessageRuntime(fabric::Engine& engine)
    : engine_(engine),
      self_(engine.session().rank()),
      split_(engine.session().settings().split),
      direct_bytes_(std::min<std::size_t>(engine.session().settings().direct_bytes, fabric::bulk_tail_bytes_max + 1)),
      chunk_bytes_max_(engine.session().settings().chunk_bytes),
      unexpected_bytes_max_(engine.session().settings().unexpected_bytes),
      unexpected_(engine.session().settings().scan_depth),
      presence_(static_cast<std::size_t>(engine.session().size())),
      held_(static_cast<std::size_t>(engine.session().size())),
      held_count_(engine.handlers()),
      held_to_(held_.size()),
      refused_(held_.size()) {
  peers_with_held_.reserve(held_.size());
  const fabric::BoardPlace first = engine.boards().take();  // the same board on all ranks
  const Group all = Group::first(engine.session().size());
  const std::vector<fabric::BoardPlace> places(Context::may_meet(*this, all.ranks()) ? all.ranks().size() : 0, first);
  world_ = std::make_shared<Context>(*this, all, world_context_id, places);
}

MessageRuntime::~MessageRuntime() { detached_.clear(abandon_detached); }

MessageRuntime& MessageRuntime::of(job::Session& session) {
  fabric::Engine& engine = fabric::Engine::of(session);
  return engine.handler<MessageRuntime>(fabric::Protocol::message,
                                        [&engine] { return std::make_unique<MessageRuntime>(engine); });
}

std::shared_ptr<Context> MessageRuntime::world() { return world_; }

Operation* MessageRuntime::make_operation(Operation::Kind kind, Context& context) {
  return new Operation(kind, context);
}

Operation* MessageRuntime::make_started(Operation::Kind kind, Context& context) {
  Operation* operation = make_operation(kind, context);
  operation->owner.thread = this_thread();
  const bool by_others = engine_.copies_directly() && !engine_.session().has_paged();
  if (kind != Operation::Kind::collective && by_others) return operation;
  try {
    list_as_stepwise(*operation);
  } catch (const std::bad_alloc&) {
    free_operation(operation);
    throw;
  }
  return operation;
}

void MessageRuntime::list_as_stepwise(Operation& operation) {
  const std::lock_guard guard(lock_);
  list_as_stepwise_locked(operation);
}

void MessageRuntime::list_as_stepwise_locked(Operation& operation) {
  if (operation.owner.is_stepwise.load(std::memory_order_relaxed)) return;
  stepwise_.add(operation);
  operation.owner.is_stepwise.store(true, std::memory_order_relaxed);
  stepwise_count_.fetch_add(1, std::memory_order_relaxed);
}

// Called under the lock.
void MessageRuntime::unlist_as_stepwise(Operation& operation) noexcept {
  stepwise_.remove(operation);
  operation.owner.is_stepwise.store(false, std::memory_order_relaxed);
  stepwise_count_.fetch_sub(1, std::memory_order_relaxed);
}

// Called under the lock: the owning thread must advance this operation also while it waits for something else.
void MessageRuntime::needs_steps(Operation& operation) noexcept {
  if (operation.owner.thread == nullptr || operation.waking.changes == &changes_of_detached_) return;
  try {
    list_as_stepwise_locked(operation);
  } catch (const std::bad_alloc&) {  // then the thread advances it only while it waits for it
  }
}

void MessageRuntime::scatter(Operation& operation, const LayoutCursor& data) {
  operation.scattered.reset(new LayoutCursor(data));
}

void MessageRuntime::free_operation(Operation* operation) noexcept {
  if (operation->owner.is_stepwise.load(std::memory_order_relaxed)) {
    const std::lock_guard guard(lock_);
    unlist_as_stepwise(*operation);
  }
  delete operation;
}

void MessageRuntime::receive(std::span<const Head> heads) noexcept {
  while (!heads.empty()) {
    if (is_message(heads.front())) {
      heads = heads.subspan(arrive(heads));
    } else {
      receive_other(heads.front());
      heads = heads.subspan(1);
    }
  }
}

void MessageRuntime::receive_other(const Head& head) noexcept {
  if (head.source >= static_cast<std::uint32_t>(engine_.session().size())) return;  // no such rank: malformed, drop it
  switch (head.kind.to<Kind>()) {
    case Kind::piece: return piece(head);
    case Kind::late: return late(head);
    case Kind::finish: return finished(head);
    case Kind::grant: return granted(head);
    case Kind::done: return done(head);
    default:  // malformed: drop it
      if (head.kind.has_tail()) engine_.give_back(static_cast<int>(head.source), head.as<fabric::Tail>().place);
      return;
  }
}

Step MessageRuntime::advance_slow(Operation& operation) noexcept {
  if (operation.call.kind == Operation::Kind::collective) [[unlikely]] {
    const bool is_complete = operation.progress.state.load(std::memory_order_relaxed) == State::complete;
    return is_complete ? Step::done : operation.schedule->advance(operation);
  }
  const State state = operation.progress.state.load(std::memory_order_acquire);  // pairs with become()
  operation.progress.handled = state;
  switch (state) {
    case State::complete:
      // The peer died or gave up. Acquire: after it the network does not read the buffer any more; pairs with the
      // network's release.
      if (operation.sending.network_reads.load(std::memory_order_acquire) != 0) [[unlikely]]
        return Step::retry;
      if (operation.sending.has_ticket) [[unlikely]] {  // the peer died
        const std::lock_guard guard(lock_);
        release_ticket(operation);
      }
      if (held_back()) [[unlikely]]
        engine_.wake_self();  // a held send may need the ticket
      return Step::done;
    case State::announced: return send_late(operation);
    case State::granted: return begin_transfer(operation);
    case State::matched: return take_payload(operation);
    case State::doomed: return operation.call.kind == Operation::Kind::send ? withdraw(operation) : abandon(operation);
    case State::settled: return settle_receive(operation);
    default: return Step::waiting;
  }
}

void MessageRuntime::wait(Operation& operation, job::Wait what) noexcept {
  adopt(operation);
  operation.signals.is_awaited.store(true, std::memory_order_relaxed);
  for_each_leaf(operation, [](Operation& leaf) { leaf.signals.is_awaited.store(true, std::memory_order_relaxed); });
  WaitForOne waiting{*this, operation, what};
  engine_.wait(waiting);
  finish_due_receives();
}

Status MessageRuntime::play(SharedCollective& collective, job::Wait what) noexcept {
  WaitForShared waiting{*this, collective, what};
  if (collective.step() != Step::done && !engine_.look_before_waiting(waiting)) engine_.wait(waiting);
  finish_due_receives();
  if (collective.needs_messages()) [[unlikely]]
    return play_by_messages(collective, what);
  return collective.status();
}

// Completes the collective, whose step() has returned done, by messages.
Status MessageRuntime::play_by_messages(SharedCollective& collective, job::Wait what) noexcept {
  Operation* operation = nullptr;
  try {
    operation = make_started(Operation::Kind::collective, collective.context());
    operation->schedule.reset(new Schedule(collective.context(), what));
  } catch (const std::bad_alloc&) {
    if (operation != nullptr) free_operation(operation);
    collective.give_up();
    return Status::no_memory;
  }
  operation->schedule->share(collective);
  wait(*operation, what);
  const Status status = operation->progress.status;
  free_operation(operation);
  return status;
}

Step MessageRuntime::advance_stepwise(Step step) noexcept {
  if (stepwise_count_.load(std::memory_order_relaxed) == 0) [[likely]]
    return step;
  return advance_stepwise_slow() == Step::retry ? Step::retry : step;
}

Step MessageRuntime::advance_stepwise_slow() noexcept {
  std::unique_lock guard(lock_);
  const auto advance_one = [&](Operation& operation) {
    operation.owner.is_being_advanced = true;
    guard.unlock();
    const Step step = advance(operation);
    guard.lock();
    operation.owner.is_being_advanced = false;
    return step;
  };
  Step step = Step::waiting;
  const OperationSet& collectives = stepwise_.collectives();
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    if (is_own_and_unfinished(*collectives[i]) && advance_one(*collectives[i]) == Step::retry) step = Step::retry;
  }
  // While one operation finds no room, the others hardly find any. They take turns.
  const auto advance_due = [&](Operation::Due due, std::size_t count, bool stops_if_blocked) {
    for (bool stops = false; count != 0 && !stops; --count) {
      Operation* const operation = stepwise_.take(due, this_thread());
      if (operation == nullptr) return;
      const bool is_blocked = advance_one(*operation) == Step::retry;
      if (is_blocked) stepwise_.block(*operation);
      stops = is_blocked && stops_if_blocked;
    }
  };
  advance_due(Operation::Due::blocked, stepwise_.blocked().size(), true);
  advance_due(Operation::Due::now, stepwise_.now().size(), false);
  return std::ranges::any_of(stepwise_.blocked(), is_own) ? Step::retry : step;
}

bool MessageRuntime::stepwise_ready() noexcept {
  if (stepwise_count_.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  const std::lock_guard guard(lock_);
  return is_stepwise_ready();
}

// Called under the lock.
bool MessageRuntime::is_stepwise_ready() const noexcept {
  return std::ranges::any_of(stepwise_.now(), is_own) ||
         std::ranges::any_of(stepwise_.collectives(), [](const Operation* operation) {
           return is_own_and_unfinished(*operation) && operation->ready();
         });
}

bool MessageRuntime::attach_stepwise(fabric::Sleeper* sleeper) noexcept {
  if (stepwise_count_.load(std::memory_order_relaxed) == 0) [[likely]]
    return true;
  const std::lock_guard guard(lock_);
  bool none_ready = stepwise_.set_sleeper(this_thread(), sleeper);
  for (Operation* operation : stepwise_.collectives()) {
    if (!is_own_and_unfinished(*operation)) continue;
    for_each_leaf(*operation, [sleeper](Operation& leaf) { leaf.waking.sleeper = sleeper; });
    none_ready = watch_shared(engine_, *operation, sleeper) && none_ready;
  }
  return none_ready && !is_stepwise_ready();
}

void MessageRuntime::adopt(Operation& operation) noexcept {
  const void* const owner = operation.owner.thread;  // without the lock: only the thread that waits for it changes it
  if (owner == nullptr || owner == this_thread()) [[likely]]
    return;
  for (;; ::sched_yield()) {
    const std::lock_guard guard(lock_);
    if (operation.owner.is_being_advanced) continue;
    operation.owner.thread = this_thread();
    (void)watch_shared(engine_, operation,
                       nullptr);  // the thread that owned it may sleep, and unregisters only sleepers of its own
    return;
  }
}

bool MessageRuntime::attach(Operation& operation, fabric::Sleeper* sleeper) noexcept {
  const std::lock_guard guard(lock_);
  operation.waking.sleeper = sleeper;
  return !operation.ready();
}

// Called under the lock. The sleeper outlives the operation, so it may be woken after the lock is released.
void MessageRuntime::become(Operation& operation, State state, fabric::Sleeper*& to_wake) noexcept {
  to_wake = sleeper_of(operation);
  set_state(operation, state);
}

void MessageRuntime::complete(Operation& operation, Status status) noexcept {
  fabric::Sleeper* to_wake = nullptr;
  {
    const std::lock_guard guard(lock_);
    operation.progress.status = status;
    release_ticket(operation);
    become(operation, State::complete, to_wake);
  }
  if (to_wake != nullptr) to_wake->wake();
}

// Called under the lock when neither side copies any more. Frees the ticket at once, not when the owning thread looks:
// it may itself be waiting for a ticket.
void MessageRuntime::release_ticket(Operation& operation) noexcept {
  if (!operation.sending.has_ticket) return;
  operation.sending.has_ticket = false;
  const Ticket ticket = operation.transfer.ticket;
  outgoing_.set(ticket.index, nullptr);
  if (has_transfer(ticket)) {
    engine_.tickets().give_back(ticket.index);
  } else {
    outgoing_.give_back(ticket.index);
  }
}

void MessageRuntime::waits_long(const Operation& operation, job::Wait what) noexcept {
  waits_long(operation.call.peer, operation.call.tag, what);
  if (operation.call.kind == Operation::Kind::send && operation.call.peer >= 0) engine_.wake_peer(operation.call.peer);
  // Its sender may have detached it, so that its service thread must send the payload.
  const bool awaits_payload = operation.call.kind == Operation::Kind::receive &&
                              operation.progress.state.load(std::memory_order_acquire) == State::matched;
  if (awaits_payload) engine_.wake_peer(static_cast<int>(operation.head.source));
}

void MessageRuntime::waits_long(int peer, int tag, job::Wait what) noexcept { engine_.tell_long_wait(what, peer, tag); }

}  // namespace tonari::message
