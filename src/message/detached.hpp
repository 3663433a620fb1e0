#pragma once

#include "message/context.hpp"
#include "message/operation_set.hpp"

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>

namespace tonari::message {

/// Operations that go on without a request. Each is idle, due or blocked:
///
///   due       it has changed, so a thread must advance it
///   blocked   it found no room, so it must be advanced again after the next poll
///
/// Owns:    the operations, and a share in their communicators.
/// Threads: used under the runtime's lock.
class DetachedOperations {
 public:
  using Due = Operation::Due;

  /// Throws std::bad_alloc, and does not own the operation then.
  void add(Operation& operation) {
    now_.reserve(all_.size() + 1);
    blocked_.reserve(all_.size() + 1);
    all_.emplace(&operation, operation.call.context->weak_from_this().lock());
  }
  /// Returns the operation's communicator; null if it is not shared. The caller frees the operation.
  std::shared_ptr<Context> remove(Operation& operation) noexcept {
    const auto found = all_.find(&operation);
    std::shared_ptr<Context> context = std::move(found->second);
    all_.erase(found);
    return context;
  }

  /// Returns false if it is due or blocked already.
  bool make_due(Operation& operation) noexcept { return put(operation, Due::now, now_); }
  bool block(Operation& operation) noexcept { return put(operation, Due::blocked, blocked_); }
  /// Removes and returns a due operation that no thread advances; null if there is none.
  Operation* take_due() noexcept {
    Operation* const taken = now_.take([](const Operation& each) { return !each.owner.is_being_advanced; });
    if (taken != nullptr) taken->owner.due = Due::no;
    return taken;
  }
  /// Makes a due operation idle. Returns false if it is not due.
  bool forget_due(Operation& operation) noexcept {
    if (operation.owner.due != Due::now) return false;
    operation.owner.due = Due::no;
    now_.remove(operation);
    return true;
  }
  /// Removes all blocked operations; calls `visit(Operation&)` for each.
  template <class Visit>
  void take_blocked(Visit&& visit) noexcept {
    while (Operation* const taken = blocked_.take([](const Operation&) { return true; })) {
      taken->owner.due = Due::no;
      visit(*taken);
    }
  }

  /// Calls `visit(Operation&)` for each; it may free its argument. Afterwards there are none.
  template <class Visit>
  void clear(Visit&& visit) noexcept {
    for (const auto& [operation, context] : all_) visit(*operation);
    all_.clear();
  }

 private:
  static bool put(Operation& operation, Due due, OperationSet& set) noexcept {
    if (operation.owner.due != Due::no) return false;
    operation.owner.due = due;
    set.add(operation);
    return true;
  }

  std::unordered_map<Operation*, std::shared_ptr<Context>> all_;
  OperationSet now_;
  OperationSet blocked_;
};

}  // namespace tonari::message
