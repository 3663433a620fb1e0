#pragma once

#include "message/operation_set.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace tonari::message {

/// The stepwise operations of all threads, see MessageRuntime, and which of them their threads must advance.
///
/// Threads: used under the runtime's lock.
/// Costs:   a thread looks at due operations and collectives, of all threads, but at no others.
class StepwiseOperations {
 public:
  using Due = Operation::Due;

  /// Throws std::bad_alloc.
  void add(Operation& operation) {
    for (OperationSet* set : {&now_, &blocked_, &always_}) set->reserve(count_ + 1);
    ++count_;
    if (operation.call.kind == Operation::Kind::collective) put(operation, Due::always);
  }
  void remove(Operation& operation) noexcept {
    unlist(operation);
    --count_;
  }
  /// The operation has changed.
  void note(Operation& operation) noexcept {
    if (operation.owner.due == Due::now || operation.owner.due == Due::always) return;
    unlist(operation);
    put(operation, Due::now);
  }
  /// The operation found no room. Does nothing if it has changed since.
  void block(Operation& operation) noexcept {
    if (operation.owner.due == Due::no) put(operation, Due::blocked);
  }
  /// The operation need not be advanced any more.
  void unlist(Operation& operation) noexcept {
    const Due due = std::exchange(operation.owner.due, Due::no);
    if (due != Due::no) set(due).remove(operation);
  }
  /// Returns an operation of `thread` that was due now, or blocked, and no longer is; null if there is none.
  Operation* take(Due due, const void* thread) noexcept {
    Operation* const taken = set(due).take([thread](const Operation& each) { return each.owner.thread == thread; });
    if (taken != nullptr) taken->owner.due = Due::no;
    return taken;
  }
  [[nodiscard]] const OperationSet& now() const noexcept { return now_; }
  [[nodiscard]] const OperationSet& blocked() const noexcept { return blocked_; }
  [[nodiscard]] const OperationSet& collectives() const noexcept { return always_; }

  /// Has `sleeper` woken when an operation of `thread` changes; null: no longer. Returns false without memory for that.
  bool set_sleeper(const void* thread, fabric::Sleeper* sleeper) noexcept {
    std::erase_if(sleepers_, [thread](const Registered& each) { return each.thread == thread; });
    if (sleeper == nullptr) return true;
    try {
      sleepers_.push_back({thread, sleeper});
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  [[nodiscard]] fabric::Sleeper* sleeper_of(const void* thread) const noexcept {
    const auto found = std::ranges::find(sleepers_, thread, &Registered::thread);
    return found == sleepers_.end() ? nullptr : found->sleeper;
  }

 private:
  struct Registered {
    const void* thread;
    fabric::Sleeper* sleeper;
  };

  OperationSet& set(Due due) noexcept { return due == Due::now ? now_ : due == Due::blocked ? blocked_ : always_; }
  void put(Operation& operation, Due due) noexcept {
    operation.owner.due = due;
    set(due).add(operation);
  }

  std::size_t count_ = 0;
  OperationSet now_;
  OperationSet blocked_;
  OperationSet always_;
  std::vector<Registered> sleepers_;
};

}  // namespace tonari::message
