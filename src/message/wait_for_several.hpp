#pragma once

#include "message/message_runtime.hpp"
#include "message/waiting.hpp"

#include <atomic>
#include <cstddef>
#include <utility>

namespace tonari::message {

/// The argument of fabric::Engine::wait that describes a wait until one of several requests, or all, are complete. For
/// all, the changes of their operations are counted: a step looks only as far as it must to find the new changes, which
/// usually belong to the first requests.
///
/// `List` has the requests in the form in which the caller has them:
///   size()        their number
///   operation(i)  the operation of request i, or null if it is complete already
///   settle(i)     called once its operation is complete; from then on operation(i) returns null
template <class List>
struct WaitForSeveral {
  MessageRuntime& runtime;
  List list;
  bool all;
  std::size_t index = 0;                  // index of a complete request
  std::atomic<std::uint64_t> changes{0};  // changes of all operations, counted by the threads that make them
  std::uint64_t changes_seen = 0;
  std::size_t first = 0;      // all requests before it are complete
  bool looks_at_each = true;  // true at first, and while an operation must be retried or is a collective

  fabric::Step step() noexcept {
    const std::uint64_t now = changes.load(std::memory_order_acquire);
    std::uint64_t new_ones = now - changes_seen;
    changes_seen = now;
    const bool each = std::exchange(looks_at_each, !all);
    bool retry = false;
    for (std::size_t i = first; i < list.size() && (each || new_ones != 0); ++i) {
      Operation* operation = list.operation(i);
      if (operation == nullptr) continue;
      // A receive can advance only after a counted change; a send may find room at any time.
      const bool may_move = each && operation->call.kind != Operation::Kind::receive;
      if (!may_move && !operation->ready()) continue;
      if (new_ones != 0) --new_ones;
      const fabric::Step step = operation->call.context->runtime().advance(*operation);
      if (step == fabric::Step::done) {
        list.settle(i);
        index = i;
        if (!all) return fabric::Step::done;
      } else {
        retry = retry || step == fabric::Step::retry;
        looks_at_each =
            looks_at_each || step == fabric::Step::retry || operation->call.kind == Operation::Kind::collective;
      }
    }
    while (first < list.size() && list.operation(first) == nullptr) ++first;
    if (first == list.size()) return fabric::Step::done;
    return runtime.advance_stepwise(retry ? fabric::Step::retry : fabric::Step::waiting);
  }
  [[nodiscard]] bool ready() const noexcept {
    if (changes.load(std::memory_order_acquire) != changes_seen) return true;
    if (!looks_at_each) return runtime.stepwise_ready();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Operation* operation = list.operation(i);
      if (operation != nullptr && operation->ready()) return true;
    }
    return runtime.stepwise_ready();
  }
  bool attach(fabric::Sleeper* sleeper) noexcept {
    bool none_ready = true;
    for_each_leaf_of_all([&](Operation& leaf) {
      Operation* const one[] = {&leaf};
      none_ready = leaf.call.context->runtime().attach(one, sleeper) && none_ready;
    });
    for_each(
        [&](Operation& operation) { none_ready = watch_shared(runtime.engine(), operation, sleeper) && none_ready; });
    return runtime.attach_stepwise(sleeper) && none_ready;
  }
  void slow() noexcept {
    bool told = false;
    for_each_leaf_of_all([&](Operation& leaf) {
      if (!std::exchange(told, true)) leaf.call.context->runtime().waits_long(leaf, wait_of(leaf));
    });
  }
  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (Operation* operation = list.operation(i)) visit(*operation);
    }
  }
  template <class Visit>
  void for_each_leaf_of_all(Visit&& visit) noexcept {
    for_each([&](Operation& operation) { for_each_leaf(operation, visit); });
  }
};

/// Waits until one of the requests, or all, are complete. Returns the index of a complete one, or list.size() if all
/// were settled before.
template <class List>
std::size_t wait_for_several(List list, bool all) noexcept {
  MessageRuntime* runtime = nullptr;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Operation* operation = list.operation(i);
    if (operation == nullptr) continue;
    runtime = &operation->call.context->runtime();
    runtime->adopt(*operation);
    // Does not look at the requests behind it, so that a program that takes many out one by one looks at each once.
    if (!all && runtime->advance(*operation) == fabric::Step::done) {
      list.settle(i);
      runtime->finish_due_receives();
      return i;
    }
    if (all) operation->signals.is_awaited.store(true, std::memory_order_relaxed);
  }
  if (runtime == nullptr) return list.size();
  WaitForSeveral<List> waiting{.runtime = *runtime, .list = list, .all = all};
  if (all) runtime->count_changes(waiting.changes, [&](auto&& visit) { waiting.for_each(visit); });
  runtime->engine().wait(waiting);
  if (all) runtime->stop_counting();
  runtime->finish_due_receives();
  return waiting.index;
}

}  // namespace tonari::message
