#pragma once

#include "fabric/head.hpp"
#include "message/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tonari::message {

/// A payload that arrived before its receive and was moved out of its sender's bulk memory. In place of Tail, in the
/// heads of unexpected messages only.
struct Kept {
  std::uint64_t bytes;
  std::byte* payload;  // by new[], owned by the head's holder
};

/// Length of the message a head announces.
std::size_t message_bytes(const fabric::Head& head) noexcept;

/// Posted receives and unexpected messages: which meets which. Both are searched in order, so that the oldest that
/// matches is found.
///
/// Threads: under the runtime's lock.
class Matching {
 public:
  ~Matching();

  /// Posts a receive or a probe.
  void post(Operation& operation) noexcept {
    posted_.push_back(operation);
    ++posted_count_;
  }
  void withdraw(Operation& operation) noexcept {
    posted_.remove(operation);
    --posted_count_;
  }
  /// The oldest posted receive that takes `head`, withdrawn; probes that match it on the way are handed to `probed`.
  template <class Probed>
  Operation* match_posted(const fabric::Head& head, Probed&& probed) noexcept;
  /// Calls `visit(Operation&)` for each posted operation; it may withdraw the one it is given.
  template <class Visit>
  void for_each_posted(Visit&& visit) noexcept;

  /// Keeps a message that no receive waits for. Throws std::bad_alloc.
  void keep(const fabric::Head& head);
  /// The oldest kept message that `operation` takes: removed, or only looked at.
  std::optional<fabric::Head> take_unexpected(const Operation& operation) noexcept;
  const fabric::Head* find_unexpected(const Operation& operation) noexcept;
  /// The kept message that `source` announced with this ticket, or null.
  fabric::Head* find_announced(std::uint32_t source, std::uint32_t ticket, std::uint32_t generation) noexcept;
  /// Removes it. False when there is none.
  bool forget_announced(std::uint32_t source, std::uint32_t ticket, std::uint32_t generation) noexcept;

  [[nodiscard]] std::size_t posted() const noexcept { return posted_count_; }
  [[nodiscard]] std::size_t unexpected() const noexcept { return unexpected_count_; }

 private:
  static bool matches(const Operation& operation, const fabric::Head& head) noexcept {
    return operation.context_id == head.context && (operation.tag < 0 || operation.tag == static_cast<int>(head.tag)) &&
           (operation.peer < 0 || operation.peer == static_cast<int>(head.source));
  }
  std::size_t find(const Operation& operation) const noexcept;
  void remove(std::size_t place) noexcept;

  OperationList posted_;
  std::size_t posted_count_ = 0;

  // Unexpected heads in order of arrival, dense; a head that was taken out of the middle keeps its place with kind 0
  // until the first ones go or half of all are such.
  std::vector<fabric::Head> heads_;
  std::size_t first_ = 0;
  std::size_t unexpected_count_ = 0;
};

template <class Probed>
Operation* Matching::match_posted(const fabric::Head& head, Probed&& probed) noexcept {
  for (Operation* operation = posted_.front(); operation != nullptr;) {
    Operation* next = operation->next;
    if (matches(*operation, head)) {
      withdraw(*operation);
      if (operation->kind == Operation::Kind::receive) return operation;
      probed(*operation);
    }
    operation = next;
  }
  return nullptr;
}

template <class Visit>
void Matching::for_each_posted(Visit&& visit) noexcept {
  for (Operation* operation = posted_.front(); operation != nullptr;) {
    Operation* next = operation->next;
    visit(*operation);
    operation = next;
  }
}

}  // namespace tonari::message
