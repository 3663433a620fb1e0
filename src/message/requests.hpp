#pragma once

#include "message/operation.hpp"

#include <tonari/message.hpp>

namespace tonari::message {

/// The runtime's access to a Request.
struct Requests {
  static Request started(Operation* operation) noexcept { return Request(operation); }
  static Request completed(Status status) noexcept { return Request(Result<Envelope>{status, {}}); }
  static Operation* operation(const Request& request) noexcept { return request.operation_; }
  /// Moves the result of a complete operation into the request and frees the operation.
  static void settle(Request& request) noexcept;
  /// Ends an operation whose message has not arrived, so that a wait for it returns.
  static void give_up(Request& request) noexcept;
};

}  // namespace tonari::message
