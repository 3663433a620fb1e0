#pragma once

#include "message/operation.hpp"
#include "message/tickets.hpp"

#include <cstdint>

namespace tonari::message {

/// Receives whose announced payload is being copied, by the sender's rank and ticket.
///
/// Threads: used under the runtime's lock.
class IncomingTable {
 public:
  /// Adds an operation under the sender of its head and its ticket. Returns false if that place is taken or there is no
  /// such ticket, which means that the announcement is malformed. Throws std::bad_alloc.
  bool add(Operation& operation) {
    if (operation.transfer.ticket.index >= tickets_in_all) return false;
    Operation*& place = table_.at(operation.head.source, operation.transfer.ticket.index);
    if (place != nullptr) return false;
    place = &operation;
    return true;
  }
  void remove(const Operation& operation) noexcept {
    Operation** const place = table_.find(operation.head.source, operation.transfer.ticket.index);
    if (place != nullptr && *place == &operation) *place = nullptr;
  }
  /// Returns null if there is no such receive: it was abandoned, or the head is malformed.
  [[nodiscard]] Operation* find(std::uint32_t source, Ticket ticket) noexcept {
    Operation** const place = table_.find(source, ticket.index);
    const bool known =
        place != nullptr && *place != nullptr && (*place)->transfer.ticket.generation == ticket.generation;
    return known ? *place : nullptr;
  }
  /// Calls `visit(Operation&)` for each; it may remove its argument.
  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    table_.for_each([&visit](Operation* each) {
      if (each != nullptr) visit(*each);
    });
  }

 private:
  ByTicket<Operation*> table_;
};

}  // namespace tonari::message
