#pragma once

#include "message/looks.hpp"
#include "message/message_runtime.hpp"
#include "message/waiting.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

// Waiting for several requests. `List` has them in the form in which the caller has them:
//
//   size()        their number
//   operation(i)  the operation of request i, or null if it is complete already
//   settle(i)     called once its operation is complete; from then on operation(i) returns null
namespace tonari::message {

/// The argument of fabric::Engine::wait that describes a wait until up to 64 requests of a list are complete. Changes
/// of their operations are counted: a step looks only as far as it must to find the new ones, which usually belong to
/// the first requests. It also looks at collectives, and at operations that found no room.
template <class List>
struct WaitForAll {
  static constexpr std::size_t count_max = 64;

  MessageRuntime& runtime;
  List& list;
  std::size_t first;              // index of the first request
  std::uint64_t open = 0;         // one bit per request, as in the next two
  std::uint64_t collectives = 0;  // among the open ones
  std::uint64_t blocked = 0;      // found no room
  std::size_t turn = 0;           // of the blocked ones: the next to be tried
  Changes changes{};
  std::uint64_t changes_seen = 0;

  /// Looks at `count` requests for the first time. Returns true if they are complete.
  bool begin(std::size_t count) noexcept {
    for (std::size_t bit = 0; bit < count; ++bit) {
      Operation* const operation = list.operation(first + bit);
      if (operation == nullptr) continue;
      operation->signals.is_awaited.store(true, std::memory_order_relaxed);
      open |= mask(bit);
      if (operation->call.kind == Operation::Kind::collective) collectives |= mask(bit);
    }
    for_each(open, [this](Operation& operation, std::size_t bit) {
      // A receive can advance only after a change; a send may find room at any time.
      if (operation.call.kind != Operation::Kind::receive || operation.ready()) advance(operation, bit);
    });
    if (open == 0) return true;
    runtime.count_changes(changes, [this](auto&& visit) {
      for_each(open, [&visit](Operation& operation, std::size_t) { visit(operation); });
    });
    return false;
  }
  fabric::Step step() noexcept {
    wait_rounds.add();
    advance_changed();
    for_each(collectives, [this](Operation& operation, std::size_t bit) { advance(operation, bit); });
    try_blocked();
    if (open == 0) return fabric::Step::done;
    return runtime.advance_stepwise(blocked != 0 ? fabric::Step::retry : fabric::Step::waiting);
  }
  [[nodiscard]] bool ready() noexcept {
    wait_rounds.add();
    if (changes.count.load(std::memory_order_acquire) != changes_seen) return true;
    bool is_ready = false;
    for_each(collectives, [&](Operation& operation, std::size_t) { is_ready = is_ready || operation.ready(); });
    return is_ready || runtime.stepwise_ready();
  }
  bool attach(fabric::Sleeper* sleeper) noexcept {
    runtime.set_sleeper(changes, sleeper);
    bool none_ready = changes.count.load(std::memory_order_acquire) == changes_seen;
    for_each(collectives, [&](Operation& operation, std::size_t) {
      none_ready = message::attach(runtime, operation, sleeper) && none_ready;
    });
    return runtime.attach_stepwise(sleeper) && none_ready;
  }
  void slow() noexcept {
    bool told = false;
    for_each(open, [&](Operation& operation, std::size_t) {
      if (!std::exchange(told, true)) tell_long_wait(runtime, operation, wait_of(operation));
    });
  }

 private:
  static constexpr std::uint64_t mask(std::size_t bit) noexcept { return std::uint64_t{1} << bit; }
  template <class Visit>
  void for_each(std::uint64_t bits, Visit&& visit) noexcept {
    for (; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      visit(*list.operation(first + bit), bit);
    }
  }
  void advance_changed() noexcept {
    const std::uint64_t now = changes.count.load(std::memory_order_acquire);
    std::uint64_t new_ones = now - std::exchange(changes_seen, now);
    for (std::uint64_t left = open; left != 0 && new_ones != 0; left &= left - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(left));
      Operation& operation = *list.operation(first + bit);
      if (!operation.ready()) continue;
      --new_ones;
      advance(operation, bit);
    }
  }
  // Tries the blocked ones in turns, until one still finds no room: then the others hardly find any.
  void try_blocked() noexcept {
    for (std::uint64_t left = blocked; left != 0;) {
      const std::uint64_t later = left & (~std::uint64_t{0} << turn);
      const auto bit = static_cast<std::size_t>(std::countr_zero(later != 0 ? later : left));
      turn = (bit + 1) % count_max;
      left &= ~mask(bit);
      advance(*list.operation(first + bit), bit);
      if ((blocked & mask(bit)) != 0) return;
    }
  }
  void advance(Operation& operation, std::size_t bit) noexcept {
    const fabric::Step step = runtime.advance(operation);
    blocked = step == fabric::Step::retry ? blocked | mask(bit) : blocked & ~mask(bit);
    if (step != fabric::Step::done) return;
    list.settle(first + bit);
    open &= ~mask(bit);
    collectives &= open;
  }
};

/// The same for a wait until one of the requests is complete. A step looks at all.
template <class List>
struct WaitForAny {
  MessageRuntime& runtime;
  List& list;
  std::size_t index = 0;  // of the complete one

  fabric::Step step() noexcept {
    bool retry = false;
    for (std::size_t i = 0; i < list.size(); ++i) {
      Operation* const operation = list.operation(i);
      if (operation == nullptr) continue;
      const fabric::Step step = runtime.advance(*operation);
      retry = retry || step == fabric::Step::retry;
      if (step != fabric::Step::done) continue;
      list.settle(i);
      index = i;
      return fabric::Step::done;
    }
    return runtime.advance_stepwise(retry ? fabric::Step::retry : fabric::Step::waiting);
  }
  [[nodiscard]] bool ready() noexcept {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Operation* const operation = list.operation(i);
      if (operation != nullptr && operation->ready()) return true;
    }
    return runtime.stepwise_ready();
  }
  bool attach(fabric::Sleeper* sleeper) noexcept {
    bool none_ready = true;
    for_each([&](Operation& operation) { none_ready = message::attach(runtime, operation, sleeper) && none_ready; });
    return runtime.attach_stepwise(sleeper) && none_ready;
  }
  void slow() noexcept {
    bool told = false;
    for_each([&](Operation& operation) {
      if (!std::exchange(told, true)) tell_long_wait(runtime, operation, wait_of(operation));
    });
  }

 private:
  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (Operation* const operation = list.operation(i)) visit(*operation);
    }
  }
};

/// Prepares requests to be advanced by this thread, in order, until `stop(operation, index)` returns true. Returns the
/// runtime; null if all were settled before.
template <class List, class Stop>
MessageRuntime* adopt_until(const List& list, Stop&& stop) noexcept {
  MessageRuntime* runtime = nullptr;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Operation* const operation = list.operation(i);
    if (operation == nullptr) continue;
    runtime = &operation->call.context->runtime();
    runtime->adopt(*operation);
    if (stop(*operation, i)) break;
  }
  return runtime;
}
template <class List>
MessageRuntime* adopt_all(const List& list) noexcept {
  return adopt_until(list, [](Operation&, std::size_t) { return false; });
}

/// Waits until all requests are complete: for one group after the other. A thread that waits for some operations also
/// advances those others on which peers depend (stepwise.hpp), so the order of the groups stops no peer.
template <class List>
void wait_for_all(List list) noexcept {
  MessageRuntime* const runtime = adopt_all(list);
  if (runtime == nullptr) return;
  using Wait = WaitForAll<List>;
  for (std::size_t first = 0; first < list.size(); first += Wait::count_max) {
    Wait waiting{.runtime = *runtime, .list = list, .first = first};
    if (waiting.begin(std::min(Wait::count_max, list.size() - first))) continue;
    runtime->engine().wait(waiting);
    runtime->stop_counting();
  }
  runtime->finish_due_receives();
}

/// Waits until one of the requests is complete. Returns its index, or list.size() if all were settled before.
template <class List>
std::size_t wait_for_any(List list) noexcept {
  std::size_t complete = list.size();
  // Does not look at the requests behind it, so that a program that takes many out one by one looks at each once.
  MessageRuntime* const runtime = adopt_until(list, [&complete](Operation& operation, std::size_t i) {
    const bool is_done = operation.call.context->runtime().advance(operation) == fabric::Step::done;
    if (is_done) complete = i;
    return is_done;
  });
  if (runtime == nullptr) return list.size();
  if (complete != list.size()) {
    list.settle(complete);
    runtime->finish_due_receives();
    return complete;
  }
  WaitForAny<List> waiting{.runtime = *runtime, .list = list};
  runtime->engine().wait(waiting);
  runtime->finish_due_receives();
  return waiting.index;
}

}  // namespace tonari::message
