#pragma once

#include "message/context.hpp"
#include "message/operation.hpp"

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

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
  /// Throws std::bad_alloc, and does not own the operation then.
  void add(Operation& operation) {
    due_.reserve(all_.size() + 1);
    blocked_.reserve(all_.size() + 1);
    all_.emplace(&operation, operation.call.context->weak_from_this().lock());
    operation.owner.is_detached = true;
  }
  /// Returns the operation's communicator; null if it is not shared. The caller frees the operation.
  std::shared_ptr<Context> remove(Operation& operation) noexcept {
    const auto found = all_.find(&operation);
    std::shared_ptr<Context> context = std::move(found->second);
    all_.erase(found);
    return context;
  }

  /// Returns false if it is due already.
  bool make_due(Operation& operation) noexcept {
    if (std::exchange(operation.owner.is_due, true)) return false;
    due_.push_back(&operation);  // does not allocate: add() has reserved room
    return true;
  }
  /// Removes and returns a due operation that no thread advances; null if there is none.
  Operation* take_due() noexcept {
    for (std::size_t i = due_.size(); i-- > 0;) {
      Operation* const operation = due_[i];
      if (operation->owner.is_being_advanced) continue;
      due_[i] = due_.back();
      due_.pop_back();
      operation->owner.is_due = false;
      return operation;
    }
    return nullptr;
  }
  /// Makes a due operation idle. Returns false if it is not due.
  bool forget_due(Operation& operation) noexcept {
    if (std::exchange(operation.owner.is_due, false)) return std::erase(due_, &operation) != 0;
    return false;
  }
  /// Does nothing if the operation is due.
  bool block(Operation& operation) noexcept {
    if (std::exchange(operation.owner.is_due, true)) return false;
    blocked_.push_back(&operation);
    return true;
  }
  /// Removes all blocked operations; calls `visit(Operation&)` for each.
  template <class Visit>
  void take_blocked(Visit&& visit) noexcept {
    while (!blocked_.empty()) {
      Operation& operation = *blocked_.back();
      blocked_.pop_back();
      operation.owner.is_due = false;
      visit(operation);
    }
  }

  /// Calls `visit(Operation&)` for each; it may free its argument. Afterwards there are none.
  template <class Visit>
  void clear(Visit&& visit) noexcept {
    for (const auto& [operation, context] : all_) visit(*operation);
    all_.clear();
  }

 private:
  std::unordered_map<Operation*, std::shared_ptr<Context>> all_;
  std::vector<Operation*> due_;
  std::vector<Operation*> blocked_;
};

}  // namespace tonari::message
