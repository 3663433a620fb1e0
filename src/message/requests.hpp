#pragma once

#include "message/operation.hpp"

#include <tonari/message.hpp>

#include <span>
#include <utility>

namespace tonari::message {

/// The runtime's access to a Request.
struct Requests {
  static Request started(Operation* operation) noexcept { return Request(operation); }
  static Request completed(Status status) noexcept { return completed({status, {}}); }
  static Request completed(const Result<Envelope>& result) noexcept { return Request(result); }
  static Operation* operation(const Request& request) noexcept { return request.operation_; }
  /// Looks once, without making progress. Returns true if the request is complete.
  static bool advance(Request& request) noexcept;
  /// Moves the result of a complete operation into the request and frees the operation.
  static void settle(Request& request) noexcept;
  /// Ends an operation whose message has not arrived, so that a wait for it returns.
  static void give_up(Request& request) noexcept;
};

/// The runtime's access to a Message.
struct Messages {
  static bool has_one(const Message& message) noexcept { return message.operation_ != nullptr; }
  /// The matched probe that has the message, if there is one.
  static Operation& operation(const Message& message) noexcept { return *message.operation_; }
  /// Takes it, to be received: a message is received only once.
  static Operation* take(Message& message) noexcept {
    message.result_ = {Status::invalid, {}};
    return std::exchange(message.operation_, nullptr);
  }
};

/// The same as tonari::wait_any and tonari::wait_all, for requests in several places.
void wait_any(std::span<Request* const> requests) noexcept;
void wait_all(std::span<Request* const> requests) noexcept;

}  // namespace tonari::message
