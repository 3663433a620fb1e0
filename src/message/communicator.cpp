#include "job/group.hpp"
#include "message/arguments.hpp"
#include "message/blocks.hpp"
#include "message/creation.hpp"
#include "message/message_runtime.hpp"
#include "message/requests.hpp"
#include "message/typed.hpp"

#include <tonari/message.hpp>

#include <new>
#include <string>
#include <utility>

namespace tonari {

using detail::Blocks;
using message::CheckedBlocks;
using message::Context;
using message::MessageRuntime;
using message::Operation;
using message::peer_of;
using message::Requests;
using message::valid_probe;
using message::valid_receive;
using message::valid_send;

Communicator::Communicator(Job& job) : context_(MessageRuntime::of(job.session()).world()) {}
Communicator::Communicator(std::shared_ptr<Context> context) noexcept : context_(std::move(context)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Rank Communicator::rank() const noexcept { return Rank{context_->rank()}; }
int Communicator::size() const noexcept { return context_->size(); }
const Group& Communicator::group() const noexcept { return context_->group(); }

Status Communicator::send_bytes(std::span<const std::byte> bytes, Rank destination, Tag tag, SendMode mode) noexcept {
  if (!valid_send(*context_, bytes, destination.value(), tag.value(), mode)) [[unlikely]]
    return Status::invalid;
  return context_->runtime().send(
      *context_, {bytes, job::rank_at(context_->peers(), destination.value()), tag.value(), context_->id(), mode});
}

Result<Envelope> Communicator::receive_bytes(std::span<std::byte> buffer, Rank source, Tag tag) noexcept {
  if (!valid_receive(*context_, buffer, source.value(), tag.value())) [[unlikely]]
    return {Status::invalid, {}};
  return context_->runtime().receive(*context_,
                                     {buffer, peer_of(*context_, source.value()), tag.value(), context_->id()});
}

Request Communicator::start_send_bytes(std::span<const std::byte> bytes, Rank destination, Tag tag,
                                       SendMode mode) noexcept {
  return message::start_send(*context_, bytes, destination.value(), tag.value(), mode);
}

Request Communicator::start_receive_bytes(std::span<std::byte> buffer, Rank source, Tag tag) noexcept {
  return message::start_receive(*context_, buffer, source.value(), tag.value());
}

Request Communicator::start_send_blocks(const Blocks& blocks, Rank destination, Tag tag, SendMode mode) noexcept {
  const CheckedBlocks checked = message::check(blocks, false);
  if (checked.status != Status::ok) return Requests::completed(checked.status);
  return message::start_send(*context_, checked.data, destination.value(), tag.value(), mode);
}

Request Communicator::start_receive_blocks(const Blocks& blocks, Rank source, Tag tag) noexcept {
  const CheckedBlocks checked = message::check(blocks, true);
  if (checked.status != Status::ok) return Requests::completed(checked.status);
  return message::start_receive(*context_, checked.data, source.value(), tag.value());
}

Result<Envelope> Communicator::probe(Rank source, Tag tag) noexcept {
  if (!valid_probe(*context_, source.value(), tag.value())) return {Status::invalid, {}};
  return *context_->runtime().probe(*context_, peer_of(*context_, source.value()), tag.value(), true);
}

std::optional<Envelope> Communicator::probe_now(Rank source, Tag tag) noexcept {
  if (!valid_probe(*context_, source.value(), tag.value())) return std::nullopt;
  const auto result = context_->runtime().probe(*context_, peer_of(*context_, source.value()), tag.value(), false);
  return result && result->status == Status::ok ? std::optional(result->value) : std::nullopt;
}

Message Communicator::matched_probe(Rank source, Tag tag) noexcept {
  if (!valid_probe(*context_, source.value(), tag.value())) return {nullptr, {Status::invalid, {}}};
  MessageRuntime& runtime = context_->runtime();
  try {
    Operation* operation = runtime.make_started(Operation::Kind::matched_probe, *context_);
    const Result<Envelope> result =
        *runtime.matched_probe(*operation, peer_of(*context_, source.value()), tag.value(), true);
    if (result.status == Status::ok) return {operation, result};
    runtime.free_operation(operation);
    return {nullptr, result};
  } catch (const std::bad_alloc&) {
    return {nullptr, {Status::no_memory, {}}};
  }
}

std::optional<Message> Communicator::matched_probe_now(Rank source, Tag tag) noexcept {
  if (!valid_probe(*context_, source.value(), tag.value())) return std::nullopt;
  MessageRuntime& runtime = context_->runtime();
  try {
    Operation* operation = runtime.make_started(Operation::Kind::matched_probe, *context_);
    const auto result = runtime.matched_probe(*operation, peer_of(*context_, source.value()), tag.value(), false);
    if (result && result->status == Status::ok) return Message{operation, *result};
    runtime.free_operation(operation);
  } catch (const std::bad_alloc&) {
  }
  return std::nullopt;
}

Message::Message(Message&& other) noexcept
    : operation_(std::exchange(other.operation_, nullptr)),
      result_(std::exchange(other.result_, Result<Envelope>{Status::invalid, {}})) {}

Message& Message::operator=(Message&& other) noexcept {
  std::swap(operation_, other.operation_);
  std::swap(result_, other.result_);
  return *this;
}

Message::~Message() {
  if (operation_ != nullptr) (void)receive_bytes({});
}

Request Message::start_receive_bytes(std::span<std::byte> buffer) noexcept {
  return message::start_receive(*this, buffer);
}

Request Message::start_receive_blocks(const Blocks& blocks) noexcept {
  const CheckedBlocks checked = message::check(blocks, true);
  if (operation_ == nullptr || checked.status == Status::ok) return message::start_receive(*this, checked.data);
  return Requests::completed(checked.status);
}

namespace {

std::shared_ptr<Context> made(const Result<std::shared_ptr<Context>>& result, int ranks) {
  if (result.status != Status::ok) {
    throw SetupError("making a communicator of " + std::to_string(ranks) +
                     " ranks: " + std::string(explain(result.status)));
  }
  return result.value;
}

}  // namespace

std::optional<Communicator> Communicator::split(int color, int key) {
  auto context = made(message::split(*context_, color, key), size());
  return context != nullptr ? std::optional(Communicator(std::move(context))) : std::nullopt;
}

Communicator Communicator::duplicate() { return Communicator(made(message::duplicate(*context_), size())); }

}  // namespace tonari
