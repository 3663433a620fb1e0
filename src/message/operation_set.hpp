#pragma once

#include "message/looks.hpp"
#include "message/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tonari::message {

/// Operations in no particular order, each at most once. An operation is in at most one set: Owner::place says where.
///
/// Threads: used under the runtime's lock.
/// Costs:   add() and remove() take the same time however many operations there are.
class OperationSet {
 public:
  /// Makes room, so that `count` operations can be added without allocating memory. Throws std::bad_alloc.
  void reserve(std::size_t count) {
    if (operations_.capacity() < count) operations_.reserve(2 * count);
  }
  /// There must be room for it.
  void add(Operation& operation) noexcept {
    operation.owner.place = static_cast<std::uint32_t>(operations_.size());
    operations_.push_back(&operation);
  }
  void remove(Operation& operation) noexcept {
    Operation* const last = operations_.back();
    operations_[operation.owner.place] = last;
    last->owner.place = operation.owner.place;
    operations_.pop_back();
  }
  /// Removes and returns one for which `is_wanted(const Operation&)` is true; null if there is none. Repeated calls
  /// take turns, so that an operation that is added again and again does not keep others from being taken.
  template <class IsWanted>
  Operation* take(IsWanted&& is_wanted) noexcept {
    for (std::size_t looked = 0; looked < operations_.size(); ++looked, ++turn_) {
      if (turn_ >= operations_.size()) turn_ = 0;
      Operation* const operation = operations_[turn_];
      operation_looks.add();
      if (!is_wanted(*operation)) continue;
      remove(*operation);
      ++turn_;
      return operation;
    }
    return nullptr;
  }

  [[nodiscard]] std::size_t size() const noexcept { return operations_.size(); }
  [[nodiscard]] Operation* operator[](std::size_t i) const noexcept { return operations_[i]; }
  [[nodiscard]] auto begin() const noexcept { return operations_.begin(); }
  [[nodiscard]] auto end() const noexcept { return operations_.end(); }

 private:
  std::vector<Operation*> operations_;
  std::size_t turn_ = 0;
};

}  // namespace tonari::message
