#pragma once

#include "message/looks.hpp"
#include "message/message_runtime.hpp"
#include "message/schedule.hpp"

#include <utility>

namespace tonari::message {

/// Calls `visit` for each operation that `operation` actually waits for: itself, or the running operations of a
/// collective.
template <class Visit>
void for_each_leaf(Operation& operation, Visit&& visit) noexcept {
  if (operation.call.kind == Operation::Kind::collective) {
    operation.schedule->for_each_running(visit);
  } else {
    visit(operation);
  }
}

/// Registers `sleeper` to be woken for a collective on a board; null unregisters. Returns false if the collective is
/// ready already.
inline bool watch_shared(fabric::Engine& engine, const Operation& operation, fabric::Sleeper* sleeper) noexcept {
  const bool is_shared = operation.call.kind == Operation::Kind::collective && operation.schedule->shared() != nullptr;
  return !is_shared || engine.watch(*operation.schedule->shared(), sleeper);
}

/// Registers `sleeper` to be woken when the operation changes; null unregisters. Returns false if it is ready already.
inline bool attach(MessageRuntime& runtime, Operation& operation, fabric::Sleeper* sleeper) noexcept {
  bool none_ready = true;
  for_each_leaf(operation, [&](Operation& leaf) { none_ready = runtime.attach(leaf, sleeper) && none_ready; });
  return watch_shared(runtime.engine(), operation, sleeper) && none_ready;
}

/// Returns the kind of wait, for `tonari status`.
inline job::Wait wait_of(const Operation& operation) noexcept {
  switch (operation.call.kind) {
    case Operation::Kind::send: return job::Wait::send;
    case Operation::Kind::collective: return operation.schedule->what();
    default: return job::Wait::receive;
  }
}

/// Reports to `tonari status` that a thread has waited long for an operation.
inline void tell_long_wait(MessageRuntime& runtime, Operation& operation, job::Wait what) noexcept {
  bool told = false;
  for_each_leaf(operation, [&](Operation& leaf) {
    if (!std::exchange(told, true)) runtime.waits_long(leaf, what);
  });
  if (!told) runtime.waits_long(Rank::any.value(), Tag::any.value(), what);
}

/// The argument of fabric::Engine::wait that describes a wait for one operation.
struct WaitForOne {
  MessageRuntime& runtime;
  Operation& operation;
  job::Wait what;

  fabric::Step step() noexcept {
    wait_rounds.add();
    const fabric::Step step = runtime.advance(operation);
    return step == fabric::Step::done ? step : runtime.advance_stepwise(step);
  }
  [[nodiscard]] bool ready() const noexcept {
    wait_rounds.add();
    return operation.ready() || runtime.stepwise_ready();
  }
  bool attach(fabric::Sleeper* sleeper) noexcept {
    const bool none_ready = message::attach(runtime, operation, sleeper);
    return runtime.attach_stepwise(sleeper) && none_ready;
  }
  void slow() noexcept { tell_long_wait(runtime, operation, what); }
};

/// The same for a collective on a board.
struct WaitForShared {
  MessageRuntime& runtime;
  SharedCollective& collective;
  job::Wait what;

  fabric::Step step() noexcept {
    const fabric::Step step = collective.step();
    return step == fabric::Step::done ? step : runtime.advance_stepwise(step);
  }
  [[nodiscard]] bool ready() const noexcept { return collective.ready() || runtime.stepwise_ready(); }
  bool attach(fabric::Sleeper* sleeper) noexcept {
    const bool none_ready = runtime.engine().watch(collective, sleeper);
    return runtime.attach_stepwise(sleeper) && none_ready;
  }
  void slow() noexcept { runtime.waits_long(collective.awaited(), Tag::any.value(), what); }
};

}  // namespace tonari::message
