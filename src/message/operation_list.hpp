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
  void push_front(Operation& operation) noexcept {
    operation.links.next = front_;
    operation.links.previous = nullptr;
    (front_ != nullptr ? front_->links.previous : back_) = &operation;
    front_ = &operation;
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
