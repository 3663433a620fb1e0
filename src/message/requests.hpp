#pragma once

#include "job/arena.hpp"
#include "message/operation.hpp"

#include <tonari/message.hpp>

namespace tonari::message {

/// The runtime's way into a Request.
struct Requests {
  static Request started(Operation* operation) noexcept { return Request(operation); }
  static Request completed(Status status) noexcept { return Request(Result{status, {}}); }
  static Operation* operation(const Request& request) noexcept { return request.operation_; }
  /// Takes over the result of a complete operation and frees it.
  static void settle(Request& request) noexcept;
  static Status wait(Request& request, job::Wait what) noexcept;
};

}  // namespace tonari::message
