#pragma once

#include "message/operation.hpp"

namespace tonari::message {

/// A list linked through the operations themselves. Not synchronised.
class OperationList {
 public:
  [[nodiscard]] Operation* front() const noexcept { return front_; }
  void push_back(Operation& operation) noexcept {
    operation.links.next = nullptr;
    operation.links.previous = back_;
    (back_ != nullptr ? back_->links.next : front_) = &operation;
    back_ = &operation;
  }
  /// Inserts the operation after `place`, or at the front if `place` is null.
  void insert_after(Operation* place, Operation& operation) noexcept {
    operation.links.previous = place;
    operation.links.next = place != nullptr ? place->links.next : front_;
    (operation.links.next != nullptr ? operation.links.next->links.previous : back_) = &operation;
    (place != nullptr ? place->links.next : front_) = &operation;
  }
  void remove(Operation& operation) noexcept {
    (operation.links.previous != nullptr ? operation.links.previous->links.next : front_) = operation.links.next;
    (operation.links.next != nullptr ? operation.links.next->links.previous : back_) = operation.links.previous;
    operation.links.next = operation.links.previous = nullptr;
  }

 private:
  Operation* front_ = nullptr;
  Operation* back_ = nullptr;
};

}  // namespace tonari::message
