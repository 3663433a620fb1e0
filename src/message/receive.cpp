#include "base/cache.hpp"
#include "job/identity.hpp"
#include "message/layout_cursor.hpp"
#include "message/message_runtime.hpp"
#include "message/schedule.hpp"
#include "message/user_data.hpp"
#include "message/waiting.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

// The part of MessageRuntime that receives.
namespace tonari::message {

using fabric::Head;
using fabric::Step;

namespace {

// Called under the runtime's lock, like job::Counters::add in this file.
void set_with_max(job::Counters::Count& now, job::Counters::Count& max, std::uint64_t value) noexcept {
  now.store(value, std::memory_order_relaxed);
  if (value > max.load(std::memory_order_relaxed)) max.store(value, std::memory_order_relaxed);
}

// Prefetches the buffer's cache lines while the message is on its way. Only for short buffers: the kernel copies long
// messages, and a long buffer is not always filled.
void fetch_to_write(std::span<std::byte> buffer) noexcept {
  constexpr std::size_t bytes_max = 4096;
  if (buffer.data() == nullptr || buffer.size() > bytes_max) return;
  for (std::size_t offset = 0; offset < buffer.size(); offset += fabric::head_bytes) prefetch_to_write(&buffer[offset]);
}

// Called if there is no memory to keep a head. Its sender considers the message sent, so it cannot be dropped.
[[noreturn, gnu::cold]] void end_without_memory() noexcept {
  job::write_line(
      "tonari: no memory is left for an unexpected message, so this rank ends; lower TONARI_UNEXPECTED_BYTES, which "
      "limits their memory, or post receives earlier");
  std::abort();
}

}  // namespace

Result<Envelope> MessageRuntime::receive(Context& context, const Receive& what) noexcept {
  Operation operation(Operation::Kind::receive, context);
  operation.signals.is_awaited.store(true, std::memory_order_relaxed);
  start_receive(operation, what);
  wait(operation, job::Wait::receive);
  return operation.result();
}

Result<Envelope> MessageRuntime::receive_scattered(Context& context, const Receive& what, LayoutCursor& data) noexcept {
  Operation operation(Operation::Kind::receive, context);
  operation.scattered.reset(&data);
  operation.signals.is_awaited.store(true, std::memory_order_relaxed);
  start_receive(operation, what);
  wait(operation, job::Wait::receive);
  (void)operation.scattered.release();  // the caller's
  return operation.result();
}

void MessageRuntime::start_receive(Operation& operation, const Receive& what) noexcept {
  operation.call.peer = what.peer;
  operation.call.tag = what.tag;
  operation.call.context_id = what.context_id;
  operation.call.buffer = what.buffer;
  Grant grant;
  bool granted = false;
  {
    const std::lock_guard guard(lock_);
    if (unexpected_.size() == 0 && !any_gone_.load(std::memory_order_relaxed)) [[likely]] {
      post(operation);
    } else {
      granted = start_receive_slow(operation, grant);
    }
  }
  if (granted) [[unlikely]]
    send_grant(static_cast<int>(operation.head.source), grant);
  if (operation.progress.state.load(std::memory_order_relaxed) == State::posted) fetch_to_write(what.buffer);
}

void MessageRuntime::post(Operation& operation) noexcept {
  operation.progress.handled = State::posted;
  operation.progress.state.store(State::posted, std::memory_order_relaxed);
  posted_.post(operation);
  set_with_max(engine_.counters().posted_now, engine_.counters().posted_max, posted_.size());
}

// Called under the lock: matches a message that has arrived already, fails, or posts the receive. Returns true if
// `grant` must be sent.
bool MessageRuntime::start_receive_slow(Operation& operation, Grant& grant) noexcept {
  const bool doomed = cannot_complete(operation);
  // Messages that arrived before their sender died or left are delivered. Exception: a collective with a dead rank, in
  // which senders withdraw their announcements.
  const bool looks = !doomed || !has_a_dead_part(operation);
  if (const auto head = looks ? unexpected_.take(operation) : std::nullopt) {
    count_unexpected(-static_cast<std::int64_t>(head->kind == Kind::kept ? head->as<Kept>().bytes : 0));
    return match(operation, *head, grant);
  }
  if (doomed) {
    operation.progress.status = Status::peer_gone;
    operation.progress.state.store(State::complete, std::memory_order_relaxed);
  } else {
    post(operation);
  }
  return false;
}

// The actions that arrived messages require, taken after the lock is released.
struct MessageRuntime::Arrivals {
  struct Granted {
    int peer;
    Grant grant;
  };
  static constexpr std::size_t grants_max = 8;
  std::array<fabric::Sleeper*, 2 * probes_told_max> sleepers;  // the first `sleeping` are valid
  std::array<Granted, grants_max> grants;                      // the first `granted` are valid
  std::size_t sleeping = 0;
  std::size_t granted = 0;

  [[nodiscard]] bool has_room() const noexcept {
    return granted < grants_max && sleeping + probes_told_max <= sleepers.size();
  }
};

// Handles messages at the front of `heads`, as many as possible at once. Returns their number.
std::size_t MessageRuntime::arrive(std::span<const Head> heads) noexcept {
  Arrivals arrivals;
  std::size_t taken = 0;
  {
    const std::lock_guard guard(lock_);
    while (taken < heads.size() && is_message(heads[taken]) && arrivals.has_room()) arrive(heads[taken++], arrivals);
  }
  for (std::size_t i = 0; i < arrivals.granted; ++i) send_grant(arrivals.grants[i].peer, arrivals.grants[i].grant);
  for (std::size_t i = 0; i < arrivals.sleeping; ++i) arrivals.sleepers[i]->wake();
  return taken;
}

void MessageRuntime::arrive(const Head& head, Arrivals& arrivals) noexcept {
  const bool sane = head.source < static_cast<std::uint32_t>(engine_.session().size()) &&
                    head.inline_bytes <= fabric::inline_bytes_max &&
                    head.tag <= static_cast<std::uint32_t>(Tag::max.value());
  if (!sane) [[unlikely]]
    return;  // malformed: drop it
  if (Operation* operation = posted_.take(head)) {
    engine_.counters().posted_now.store(posted_.size(), std::memory_order_relaxed);
    if (fabric::Sleeper* const sleeper = sleeper_of(*operation)) arrivals.sleepers[arrivals.sleeping++] = sleeper;
    auto& granted = arrivals.grants[arrivals.granted];
    granted.peer = static_cast<int>(head.source);
    arrivals.granted += match(*operation, head, granted.grant) ? 1 : 0;
  } else {
    keep(head);
    if (probes_.front() != nullptr) [[unlikely]]
      arrivals.sleeping += tell_probes(head, std::span(arrivals.sleepers).subspan(arrivals.sleeping));
  }
}

// Matches a message with its receive; called under the lock. Afterwards the operation belongs to its owning thread.
// Returns true if `grant` must be sent, so that the sender copies too.
bool MessageRuntime::match(Operation& operation, const Head& head, Grant& grant) noexcept {
  job::Counters& counters = engine_.counters();
  operation.head = head;
  if (operation.call.kind == Operation::Kind::matched_probe) {  // it is matched with its receive later
    set_state(operation, State::matched);
    return false;
  }
  bool granted = false;
  const bool is_awaited = operation.signals.is_awaited.load(std::memory_order_relaxed);
  job::Counters::add(counters.messages_received, 1);
  const std::size_t bytes = std::min(message_bytes(head), operation.call.buffer.size());
  if (head.kind == Kind::message_announced) {
    if (any_gone_.load(std::memory_order_relaxed) && presence_[head.source] == Presence::dead) [[unlikely]] {
      operation.progress.status =
          Status::peer_gone;  // its payload was lost; died() has run already and will not end it
      set_state(operation, State::settled);
      return false;
    }
    operation.transfer.ticket = head.as<Announced>().ticket;
    operation.transfer.terms = terms_for(operation);
    const Terms& terms = operation.transfer.terms;
    if (!incoming_.add(operation)) {  // malformed: its payload could not be told from another one's
      operation.progress.status = Status::bounds;
      set_state(operation, State::settled);
      return false;
    }
    const bool direct = terms.road == Road::direct;
    job::Counters::add(direct ? counters.bytes_direct : counters.bytes_buffered, bytes);
    // If there is only one chunk and the owning thread is about to copy it, copying takes less time than asking the
    // sender. It also copies alone if its layout has gaps, which only it knows, or if the ticket has no TransferMemory.
    const bool alone = direct && !has_gaps_there(head) &&
                       (!has_transfer(operation.transfer.ticket) || operation.scattered != nullptr ||
                        (bytes <= terms.chunk_bytes && is_awaited));
    // A grant of 0 bytes completes the send: its receive was posted, and nothing remains to be copied.
    granted = !alone || bytes == 0;
    if (granted) grant = {operation.transfer.ticket, terms};
    if (!direct || (alone && !is_awaited)) needs_steps(operation);
  } else {
    job::Counters::add(counters.bytes_buffered, bytes);
    // The sender may need the block before the owning thread waits for this receive.
    if (head.kind == Kind::message_bulk && !is_awaited) needs_steps(operation);
  }
  set_state(operation, State::matched);
  return granted;
}

// Decides how the payload of an announced message is copied.
Terms MessageRuntime::terms_for(const Operation& operation) const noexcept {
  const auto announced = operation.head.as<Announced>();
  const std::uint64_t bytes = std::min<std::uint64_t>(announced.bytes, operation.call.buffer.size());
  // If both sides have gaps, both operations are stepwise and each side copies its own part.
  const bool in_pieces = !engine_.copies_directly(static_cast<int>(operation.head.source)) ||
                         is_refused(static_cast<int>(operation.head.source)) || announced.address == in_pieces_only ||
                         is_paged(operation) || (operation.scattered != nullptr && has_gaps_there(operation.head));
  return {.address = reinterpret_cast<std::uint64_t>(operation.call.buffer.data()),
          .bytes = bytes,
          .road = in_pieces ? Road::pieces : Road::direct,
          .chunk_bytes = static_cast<std::uint32_t>(fabric::chunk_bytes_of(bytes, chunk_bytes_max_))};
}

// Returns whether the data may be in paged memory. Scattered data are not inspected.
bool MessageRuntime::is_paged(const Operation& operation) const noexcept {
  const job::Session& session = engine_.session();
  return operation.scattered != nullptr ? session.has_paged()
                                        : session.is_paged(operation.call.buffer.data(), operation.call.buffer.size());
}

void MessageRuntime::send_grant(int peer, const Grant& grant) noexcept {
  Head head;
  head.kind = Kind::grant;
  head.source = static_cast<std::uint32_t>(self_);
  head.set(grant);
  send_reply(peer, head);
}

// Keeps an unexpected message; called under the lock. Its payload is moved out of the sender's bulk memory, unless the
// limit is reached: then it stays there, and senders are asked to keep further payloads.
void MessageRuntime::keep(const Head& head) noexcept {
  Head kept = head;
  std::size_t bytes = 0;
  if (head.kind == Kind::message_bulk) {
    const auto tail = head.as<fabric::Tail>();
    const int source = static_cast<int>(head.source);
    const auto payload = engine_.look(source, tail.place, tail.bytes);
    if (payload.empty()) return;  // names no block: malformed
    if (unexpected_bytes_ < unexpected_bytes_max_) {
      if (keep_payload(kept, payload)) {
        engine_.give_back(source, tail.place);
        bytes = payload.size();
      }
    }
  }
  try {
    unexpected_.keep(kept);
  } catch (const std::bad_alloc&) {
    end_without_memory();
  }
  count_unexpected(static_cast<std::int64_t>(bytes));
}

// Returns false if there is no memory for a copy.
bool MessageRuntime::keep_payload(Head& head, std::span<const std::byte> payload) noexcept {
  auto* copy = new (std::nothrow) std::byte[payload.size()];
  if (copy == nullptr) return false;
  std::memcpy(copy, payload.data(), payload.size());
  head.kind = Kind::kept;
  head.set(Kept{payload.size(), copy});
  return true;
}

// Updates the counts after the queue of unexpected messages changed by `payload_bytes` of kept payload; called under
// the lock.
void MessageRuntime::count_unexpected(std::int64_t payload_bytes) noexcept {
  job::Counters& counters = engine_.counters();
  kept_bytes_ += static_cast<std::uint64_t>(payload_bytes);
  unexpected_bytes_ = kept_bytes_ + unexpected_.size() * fabric::head_bytes;
  set_with_max(counters.unexpected_now, counters.unexpected_max, unexpected_.size());
  set_with_max(counters.unexpected_bytes_now, counters.unexpected_bytes_max, unexpected_bytes_);
  std::atomic<std::uint32_t>& full = engine_.session().block().full;
  const bool is_full = full.load(std::memory_order_relaxed) != 0;
  if (!is_full && unexpected_bytes_ >= unexpected_bytes_max_) full.store(1, std::memory_order_relaxed);
  if (is_full && unexpected_bytes_ < unexpected_bytes_max_ / 4 * 3) full.store(0, std::memory_order_relaxed);
}

// Called by the owning thread: fetches the payload after the head has arrived.
Step MessageRuntime::take_inline_fast(Operation& operation) noexcept {
  const std::size_t bytes = std::min<std::size_t>(operation.head.inline_bytes, operation.call.buffer.size());
  if (bytes == 8) {
    std::memcpy(operation.call.buffer.data(), operation.head.payload.data(), 8);  // without a function call
  } else {
    copy_in(operation, 0, operation.head.payload.data(), bytes);
  }
  return complete_receive(operation, Status::ok);
}

Step MessageRuntime::take_payload(Operation& operation) noexcept {
  const Head& head = operation.head;
  if (operation.call.kind != Operation::Kind::receive) return complete_receive(operation, Status::ok);  // a probe
  const std::size_t bytes = std::min(message_bytes(head), operation.call.buffer.size());
  switch (head.kind.to<Kind>()) {
    case Kind::message_inline: copy_in(operation, 0, head.payload.data(), bytes); break;
    case Kind::message_bulk: {
      const auto tail = head.as<fabric::Tail>();
      const int source = static_cast<int>(head.source);
      const auto payload = engine_.look(source, tail.place, tail.bytes);
      if (payload.empty()) return complete_receive(operation, Status::bounds);
      copy_in(operation, 0, payload.data(), bytes);
      give_back_soon(source, tail.place);
      break;
    }
    case Kind::kept: {
      const auto kept = head.as<Kept>();
      copy_in(operation, 0, kept.payload, bytes);
      delete[] kept.payload;
      break;
    }
    default:
      return operation.transfer.terms.road == Road::direct ? copy_from_sender(operation) : take_pieces(operation);
  }
  return complete_receive(operation, Status::ok);
}

void MessageRuntime::give_back_soon(int peer, std::uint64_t place) noexcept {
  const std::lock_guard guard(returns_lock_);
  returns_[returns_count_++] = {peer, place};
  if (returns_count_ == returns_.size()) give_back_now();
}

// Called under returns_lock_.
void MessageRuntime::give_back_now() noexcept {
  while (returns_count_ != 0) {
    const Return& each = returns_[--returns_count_];
    engine_.give_back(each.peer, each.place);
  }
}

void MessageRuntime::idle() noexcept {
  const std::lock_guard guard(returns_lock_);
  give_back_now();
}

Step MessageRuntime::complete_receive(Operation& operation, Status status) noexcept {
  const bool truncated = status == Status::ok && operation.call.kind == Operation::Kind::receive &&
                         message_bytes(operation.head) > operation.call.buffer.size();
  operation.progress.status = truncated ? Status::truncated : status;
  operation.progress.has_envelope = true;
  // Relaxed: only the owning thread reads it from here on.
  operation.progress.handled = State::complete;
  operation.progress.state.store(State::complete, std::memory_order_relaxed);
  return Step::done;
}

void MessageRuntime::reply_done(int peer, Ticket ticket, Status status) noexcept {
  Head head;
  head.kind = Kind::done;
  head.source = static_cast<std::uint32_t>(self_);
  head.set(Outcome{ticket, static_cast<std::uint32_t>(status), 0});
  send_reply(peer, head);
}

void MessageRuntime::forget_incoming(Operation& operation) noexcept {
  const std::lock_guard guard(lock_);
  incoming_.remove(operation);
}

void MessageRuntime::finished(const Head& head) noexcept {
  const auto outcome = head.as<Outcome>();
  fabric::Sleeper* to_wake = nullptr;
  {
    const std::lock_guard guard(lock_);
    Operation* operation = incoming_.find(head.source, outcome.ticket);
    if (operation == nullptr) {  // the sender withdrew the message before it was received
      if (unexpected_.forget_announced(head.source, outcome.ticket)) count_unexpected(0);
      return;
    }
    operation->progress.status = fabric::status_of(outcome.status);
    const bool refused = operation->progress.status == Status::denied && operation->transfer.terms.road == Road::direct;
    if (refused) {
      needs_steps(*operation);  // pieces will follow, once the owning thread asks for them
    } else {
      incoming_.remove(*operation);
    }
    become(*operation, State::settled, to_wake);
  }
  if (to_wake != nullptr) to_wake->wake();
}

// If the announced message is still unexpected, it becomes a message whose payload has arrived. If its receive was
// posted meanwhile, the payload moves as granted, and this copy is not needed.
void MessageRuntime::late(const Head& head) noexcept {
  const auto piece = head.as<Piece>();
  const int source = static_cast<int>(head.source);
  const auto payload = engine_.look(source, piece.place, piece.bytes);
  if (payload.empty()) return;  // names no block: malformed
  bool kept = false;
  {
    const std::lock_guard guard(lock_);
    Head* announced = unexpected_.find_announced(head.source, piece.ticket);
    if (announced != nullptr && message_bytes(*announced) == payload.size() &&
        unexpected_bytes_ < unexpected_bytes_max_) {
      kept = keep_payload(*announced, payload);
      count_unexpected(kept ? static_cast<std::int64_t>(payload.size()) : 0);
    }
  }
  engine_.give_back(source, piece.place);
  if (kept) reply_done(source, piece.ticket, Status::ok);
}

}  // namespace tonari::message
