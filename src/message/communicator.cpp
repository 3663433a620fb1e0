#include "job/group.hpp"
#include "job/session.hpp"
#include "message/arguments.hpp"
#include "message/blocks.hpp"
#include "message/message_runtime.hpp"
#include "message/requests.hpp"
#include "message/typed.hpp"

#include <tonari/message.hpp>

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

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
      *context_, {bytes, job::rank_at(context_->group(), destination.value()), tag.value(), context_->id(), mode});
}

Result<Envelope> Communicator::receive_bytes(std::span<std::byte> buffer, Rank source, Tag tag) noexcept {
  if (!valid_receive(*context_, buffer, source.value(), tag.value())) [[unlikely]]
    return {Status::invalid, {}};
  MessageRuntime& runtime = context_->runtime();
  Operation operation(Operation::Kind::receive, *context_);
  operation.signals.is_awaited.store(true, std::memory_order_relaxed);
  runtime.start_receive(operation, {buffer, peer_of(*context_, source.value()), tag.value(), context_->id()});
  runtime.wait(operation, job::Wait::receive);
  return operation.result();
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

struct Choice {
  int color;
  int key;
  Rank rank;  // its rank in the parent
  std::uint32_t context_id;
  fabric::BoardPlace place;  // a board that it has free
};

// Context ids come from a counter in the host's arena. Each communicator takes two, one of them for collectives. Hosts
// use interleaved numbers, so that no two hosts draw the same. 0 is the world's id; as a result it means that no id is
// left.
std::uint32_t draw_context_id(MessageRuntime& runtime) noexcept {
  const job::Session& session = runtime.engine().session();
  const auto hosts = static_cast<std::uint32_t>(session.hosts());
  const auto host = static_cast<std::uint32_t>(session.host(session.rank()));
  const std::uint32_t last = 0x7ffffff0 / hosts - 1;
  std::atomic<std::uint32_t>& drawn = session.arena().header().context;
  std::uint32_t seen = drawn.load(std::memory_order_relaxed);  // relaxed: the numbers only have to be unique
  while (seen < last && !drawn.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) {
  }
  return seen < last ? 2 * (seen * hosts + host + 1) : 0;
}

// Gives all ranks that chose the same color the same id.
void draw_context_ids(MessageRuntime& runtime, std::span<Choice> choices) noexcept {
  for (auto each = choices.begin(); each != choices.end(); ++each) {
    const auto same =
        std::find_if(choices.begin(), each, [&](const Choice& other) { return other.color == each->color; });
    if (each->color >= 0) each->context_id = same != each ? same->context_id : draw_context_id(runtime);
  }
}

// Returns the boards of a new communicator's ranks, if it may use boards and each of its ranks has one to spare.
std::vector<fabric::BoardPlace> places_of(const MessageRuntime& runtime, std::span<const Choice> choices,
                                          std::span<const JobRank> ranks) {
  std::vector<fabric::BoardPlace> places;
  const bool have_all = std::ranges::none_of(
      choices, [](const Choice& choice) { return choice.place.index == fabric::BoardPlace::none; });
  if (!have_all || !Context::may_meet(runtime, ranks)) return places;
  for (const Choice& choice : choices) places.push_back(choice.place);
  return places;
}

}  // namespace

std::optional<Communicator> Communicator::split(int color, int key) {
  const auto size = static_cast<std::size_t>(context_->size());
  std::vector<Choice> choices(size);
  fabric::Boards& boards = context_->runtime().engine().boards();
  const Choice mine{color, key, rank(), 0, boards.take()};
  Status status = gather(mine, choices, Rank{0});
  if (rank() == 0) draw_context_ids(context_->runtime(), choices);
  if (status == Status::ok) status = broadcast(choices, Rank{0});
  if (status != Status::ok) {  // the board stays in use, because other ranks may have made the group
    throw SetupError("making a communicator of " + std::to_string(size) + " ranks: " + std::string(explain(status)));
  }
  if (color < 0) {
    boards.give_back(mine.place);
    return std::nullopt;
  }
  std::erase_if(choices, [color](const Choice& choice) { return choice.color != color; });
  std::ranges::stable_sort(choices, {}, &Choice::key);  // ranks are in order already
  std::vector<JobRank> ranks;
  ranks.reserve(choices.size());
  for (const Choice& choice : choices) ranks.push_back(job_rank(choice.rank));
  const auto places = places_of(context_->runtime(), choices, ranks);
  if (places.empty()) boards.give_back(mine.place);
  if (choices.front().context_id == 0) {
    throw SetupError("no communicator number is left: this job has made 2^31 communicators");
  }
  return Communicator(
      std::make_shared<Context>(context_->runtime(), Group(std::move(ranks)), choices.front().context_id, places));
}

Communicator Communicator::duplicate() { return std::move(*split(0, 0)); }

}  // namespace tonari
