#pragma once

#include "message/operation.hpp"

#include <tonari/message.hpp>

#include <span>
#include <utility>

namespace tonari::message {

class MessageRuntime;

/// The runtime's access to a Request.
struct Requests {
  static Request started(Operation* operation) noexcept { return Request(operation); }
  static Request completed(Status status) noexcept { return completed({status, {}}); }
  static Request completed(const Result<Envelope>& result) noexcept { return Request(result); }
  static Operation* operation(const Request& request) noexcept { return request.operation_; }
  /// Looks once, without making progress. Returns true if the request is complete.
  static bool advance(Request& request) noexcept;
  /// Result of a complete request.
  static const Result<Envelope>& result(const Request& request) noexcept { return request.result_; }
  /// Moves the result of a complete operation into the request and frees the operation.
  static void settle(Request& request) noexcept;
  /// Lets the operation go on without its request, which is complete afterwards (MPI_Request_free). The operation's
  /// buffer and communicator stay in use until it is complete. It makes progress as described at
  /// MessageRuntime::detach(): without a call of any thread of this rank only if the service thread is on. A receive is
  /// complete before the rank has received a message that its peer sent after the peer's send of it had returned. An
  /// operation that is not complete when all ranks have left the job is given up. A collective is waited for instead.
  static void detach(Request& request) noexcept;
  /// Makes a request that is complete once complete_foreign() was called for its `operation`, with the status that it
  /// passes. Throws std::bad_alloc.
  static Request foreign(MessageRuntime& runtime, Operation*& operation);
  /// Completes the operation of a foreign request, once. Any thread. It is freed when its request is, by a wait or
  /// test.
  static void complete_foreign(Operation& operation, Status status) noexcept;
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
