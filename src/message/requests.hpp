#pragma once

#include "message/operation.hpp"

#include <tonari/message.hpp>

namespace tonari::message {

/// The runtime's way into a Request.
struct Requests {
  static Request started(Operation* operation) noexcept { return Request(operation); }
  static Request completed(Status status) noexcept { return Request(Result<Envelope>{status, {}}); }
  static Operation* operation(const Request& request) noexcept { return request.operation_; }
  /// Takes over the result of a complete operation and frees it.
  static void settle(Request& request) noexcept;
  /// Ends what waits for a message that has not come, so that waiting for it does not last.
  static void give_up(Request& request) noexcept;
};

}  // namespace tonari::message
