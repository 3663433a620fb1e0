#include "message/typed.hpp"

#include "message/arguments.hpp"
#include "message/message_runtime.hpp"
#include "message/requests.hpp"

#include <new>
#include <utility>

namespace tonari::message {

namespace {

// A span with the number of bytes but without an address, which must not be read.
std::span<std::byte> no_address(const LayoutCursor& data) noexcept {
  return {static_cast<std::byte*>(nullptr), data.bytes()};
}

// Starts an operation by `start(Operation&)`. If `data` are set, they replace its buffer.
template <class Start>
Request begin(Context& context, Operation::Kind kind, const LayoutCursor* data, Start&& start) noexcept {
  MessageRuntime& runtime = context.runtime();
  Operation* operation = nullptr;
  try {
    operation = runtime.make_started(kind, context);
    if (data != nullptr) runtime.scatter(*operation, *data);
    start(*operation);
    return Requests::started(operation);
  } catch (const std::bad_alloc&) {
    if (operation != nullptr) runtime.free_operation(operation);
    return Requests::completed(Status::no_memory);
  }
}

Request begin_send(Context& context, const MessageRuntime::Send& what, const LayoutCursor* data) noexcept {
  return begin(context, Operation::Kind::send, data,
               [&](Operation& operation) { context.runtime().start_send(operation, what); });
}

Request begin_receive(Context& context, const MessageRuntime::Receive& what, const LayoutCursor* data) noexcept {
  return begin(context, Operation::Kind::receive, data,
               [&](Operation& operation) { context.runtime().start_receive(operation, what); });
}

Request begin_receive(Message& message, std::span<std::byte> buffer) noexcept {
  Operation* const operation = Messages::take(message);
  operation->call.context->runtime().receive_matched(*operation, buffer);
  return Requests::started(operation);
}

// The result of receiving something that is no message.
Request refuse_message(const Message& message) noexcept {
  return Requests::completed(message.status() == Status::ok ? Status::invalid : message.status());
}

}  // namespace

Status send(Context& context, LayoutCursor& data, int destination, int tag, SendMode mode) noexcept {
  const auto buffer = data.dense();
  const std::span<std::byte> bytes = buffer ? *buffer : no_address(data);
  if (!valid_send(context, buffer.value_or(std::span<std::byte>()), destination, tag, mode)) return Status::invalid;
  const MessageRuntime::Send what{bytes, job::rank_at(context.peers(), destination), tag, context.id(), mode};
  return buffer ? context.runtime().send(context, what) : context.runtime().send_scattered(context, what, data);
}

Result<Envelope> receive(Context& context, LayoutCursor& data, int source, int tag) noexcept {
  const auto buffer = data.dense();
  const std::span<std::byte> bytes = buffer ? *buffer : no_address(data);
  if (!valid_receive(context, buffer.value_or(std::span<std::byte>()), source, tag)) return {Status::invalid, {}};
  const MessageRuntime::Receive what{bytes, peer_of(context, source), tag, context.id()};
  return buffer ? context.runtime().receive(context, what) : context.runtime().receive_scattered(context, what, data);
}

Request start_send(Context& context, std::span<const std::byte> bytes, int destination, int tag,
                   SendMode mode) noexcept {
  if (!valid_send(context, bytes, destination, tag, mode)) return Requests::completed(Status::invalid);
  const MessageRuntime::Send what{bytes, job::rank_at(context.peers(), destination), tag, context.id(), mode};
  const Status status = context.runtime().send_fast(what);
  if (status != Status::again) return Requests::completed(status);
  return begin_send(context, what, nullptr);
}

Request start_send(Context& context, const LayoutCursor& data, int destination, int tag, SendMode mode) noexcept {
  if (const auto buffer = data.dense()) return start_send(context, *buffer, destination, tag, mode);
  if (!valid_send(context, {}, destination, tag, mode)) return Requests::completed(Status::invalid);
  const int peer = job::rank_at(context.peers(), destination);
  return begin_send(context, {no_address(data), peer, tag, context.id(), mode}, &data);
}

Request start_receive(Context& context, std::span<std::byte> buffer, int source, int tag) noexcept {
  if (!valid_receive(context, buffer, source, tag)) return Requests::completed(Status::invalid);
  return begin_receive(context, {buffer, peer_of(context, source), tag, context.id()}, nullptr);
}

Request start_receive(Context& context, const LayoutCursor& data, int source, int tag) noexcept {
  if (const auto buffer = data.dense()) return start_receive(context, *buffer, source, tag);
  if (!valid_receive(context, {}, source, tag)) return Requests::completed(Status::invalid);
  return begin_receive(context, {no_address(data), peer_of(context, source), tag, context.id()}, &data);
}

Request start_receive(Message& message, std::span<std::byte> buffer) noexcept {
  const bool is_one = Messages::has_one(message) && (buffer.data() != nullptr || buffer.empty());
  return is_one ? begin_receive(message, buffer) : refuse_message(message);
}

Request start_receive(Message& message, const LayoutCursor& data) noexcept {
  if (const auto buffer = data.dense()) return start_receive(message, *buffer);
  if (!Messages::has_one(message)) return refuse_message(message);
  try {
    Operation& operation = Messages::operation(message);
    operation.call.context->runtime().scatter(operation, data);
  } catch (const std::bad_alloc&) {
    return Requests::completed(Status::no_memory);
  }
  return begin_receive(message, no_address(data));
}

}  // namespace tonari::message
