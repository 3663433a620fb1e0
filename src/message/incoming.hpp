#pragma once

#include "message/operation.hpp"
#include "message/tickets.hpp"

#include <cstdint>

namespace tonari::message {

/// Receives whose announced payload is being copied, by the sender's rank and ticket.
///
/// Threads: under the runtime's lock.
class IncomingTable {
 public:
  /// By the operation's head and grant. False when there is one already, or no such ticket: the peer lies. Throws
  /// std::bad_alloc.
  bool add(Operation& operation) {
    if (operation.grant.ticket >= tickets_in_all) return false;
    Operation*& place = table_.at(operation.head.source, operation.grant.ticket);
    if (place != nullptr) return false;
    place = &operation;
    return true;
  }
  void remove(const Operation& operation) noexcept {
    Operation** const place = table_.find(operation.head.source, operation.grant.ticket);
    if (place != nullptr && *place == &operation) *place = nullptr;
  }
  /// Null when there is none: it was abandoned, or a peer lies.
  [[nodiscard]] Operation* find(std::uint32_t source, std::uint32_t ticket, std::uint32_t generation) noexcept {
    Operation** const place = table_.find(source, ticket);
    return place != nullptr && *place != nullptr && (*place)->grant.generation == generation ? *place : nullptr;
  }
  /// Calls `visit(Operation&)` for each; it may remove the one it is given.
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
