#include "base/cache.hpp"
#include "job/identity.hpp"
#include "message/message_runtime.hpp"
#include "message/scattered.hpp"
#include "message/schedule.hpp"
#include "message/waiting.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

// The receiving half of Runtime.
namespace tonari::message {

using fabric::Head;
using fabric::Kind;
using fabric::Step;

namespace {

// Under the runtime's lock, as job::Counters::add here.
void set_with_max(job::Counters::Count& now, job::Counters::Count& max, std::uint64_t value) noexcept {
  now.store(value, std::memory_order_relaxed);
  if (value > max.load(std::memory_order_relaxed)) max.store(value, std::memory_order_relaxed);
}

// While the message is on its way, so may be the lines it goes into. Short buffers only: a long one is copied by the
// kernel, and is not always filled.
void fetch_to_write(std::span<std::byte> buffer) noexcept {
  constexpr std::size_t bytes_max = 4096;
  if (buffer.data() == nullptr || buffer.size() > bytes_max) return;
  for (std::size_t offset = 0; offset < buffer.size(); offset += fabric::head_bytes) prefetch_to_write(&buffer[offset]);
}

// Copies what arrived to bytes [offset, offset + bytes) of the user's.
void copy_in(Operation& operation, std::size_t offset, const std::byte* from, std::size_t bytes) noexcept {
  if (operation.scattered != nullptr) [[unlikely]] {
    operation.scattered->unpack(offset, from, bytes);
  } else if (bytes != 0) {
    std::memcpy(operation.buffer + offset, from, bytes);
  }
}

// The same straight out of the sender's memory, at `from`.
[[gnu::noinline]] Status read_packed(Operation& operation, const fabric::DirectCopy& copy, std::size_t offset,
                                     std::uint64_t from, std::size_t bytes) noexcept {
  std::array<std::byte, packed_bytes_max> packed;
  for (std::size_t done = 0; done < bytes; done += packed.size()) {
    const std::size_t part = std::min(packed.size(), bytes - done);
    const Status status = copy.read(packed.data(), from + done, part);
    if (status != Status::ok) return status;
    operation.scattered->unpack(offset + done, packed.data(), part);
  }
  return Status::ok;
}
Status read_direct(Operation& operation, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t from,
                   std::size_t bytes) noexcept {
  return operation.scattered != nullptr ? read_packed(operation, copy, offset, from, bytes)
                                        : copy.read(operation.buffer + offset, from, bytes);
}

// The head has nowhere to go, and its sender is done with it.
[[noreturn, gnu::cold]] void end_without_memory() noexcept {
  job::write_line(
      "tonari: no memory is left for a message that no receive waits for, so this rank ends "
      "(TONARI_UNEXPECTED_BYTES limits what waits)");
  std::abort();
}

// A payload that has gaps is announced without an address, and written by its sender.
bool has_gaps_there(const Head& head) noexcept { return head.as<fabric::Announced>().address == fabric::has_gaps; }

}  // namespace

void MessageRuntime::start_receive(Operation& operation, const Receive& what) noexcept {
  operation.peer = what.peer;
  operation.tag = what.tag;
  operation.context_id = what.context_id;
  operation.buffer = what.buffer.data();
  operation.bytes = what.buffer.size();
  fabric::Grant grant;
  bool granted = false;
  {
    const std::lock_guard guard(lock_);
    if (unexpected_.size() == 0 && !any_gone_.load(std::memory_order_relaxed)) [[likely]] {
      post(operation);
    } else {
      granted = begin_receive(operation, grant);
    }
  }
  if (granted) [[unlikely]]
    send_grant(static_cast<int>(operation.head.source), grant);
  if (operation.state.load(std::memory_order_relaxed) == State::posted) fetch_to_write(what.buffer);
}

void MessageRuntime::post(Operation& operation) noexcept {
  operation.seen = State::posted;
  operation.state.store(State::posted, std::memory_order_relaxed);
  posted_.post(operation);
  set_with_max(engine_.counters().posted_now, engine_.counters().posted_max, posted_.size());
}

// Under the lock: meets a message that is here already, or fails, or is posted. True with a grant that is to be sent.
bool MessageRuntime::begin_receive(Operation& operation, fabric::Grant& grant) noexcept {
  const bool doomed = cannot_complete(operation);
  // What has arrived from who is gone is delivered; but not to a collective with a dead rank, whose senders withdraw
  // what they announced.
  const bool looks = !doomed || !has_a_dead_part(operation);
  if (const auto head = looks ? unexpected_.take(operation) : std::nullopt) {
    count_unexpected(-static_cast<std::int64_t>(head->kind == Kind::kept ? head->as<Kept>().bytes : 0));
    return match(operation, *head, grant);
  }
  if (doomed) {
    operation.status = Status::peer_gone;
    operation.state.store(State::complete, std::memory_order_relaxed);
  } else {
    post(operation);
  }
  return false;
}

// What follows from messages that arrived, once the lock is free.
struct MessageRuntime::Arrivals {
  struct Granted {
    int peer;
    fabric::Grant grant;
  };
  static constexpr std::size_t grants_max = 8;
  std::array<fabric::Sleeper*, 2 * probes_told_max> sleepers;  // as far as `sleeping`
  std::array<Granted, grants_max> grants;                      // as far as `granted`
  std::size_t sleeping = 0;
  std::size_t granted = 0;

  [[nodiscard]] bool has_room() const noexcept {
    return granted < grants_max && sleeping + probes_told_max <= sleepers.size();
  }
};

// Takes messages from the front, as many as there are, at one go. Answers how many.
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
    return;  // a peer lies
  if (Operation* operation = posted_.take(head)) {
    engine_.counters().posted_now.store(posted_.size(), std::memory_order_relaxed);
    if (operation->sleeper != nullptr) arrivals.sleepers[arrivals.sleeping++] = operation->sleeper;
    auto& granted = arrivals.grants[arrivals.granted];
    granted.peer = static_cast<int>(head.source);
    arrivals.granted += match(*operation, head, granted.grant) ? 1 : 0;
  } else {
    keep(head);
    if (probes_.front() != nullptr) [[unlikely]]
      arrivals.sleeping += tell_probes(head, std::span(arrivals.sleepers).subspan(arrivals.sleeping));
  }
}

// A message meets its receive; under the lock. Afterwards the operation is its asker's. True with a grant that is to be
// sent: the sender is to copy too.
bool MessageRuntime::match(Operation& operation, const Head& head, fabric::Grant& grant) noexcept {
  job::Counters& counters = engine_.counters();
  operation.head = head;
  if (operation.kind == Operation::Kind::matched_probe) {  // it meets its receive later
    set_state(operation, State::matched);
    return false;
  }
  bool granted = false;
  job::Counters::add(counters.messages_received, 1);
  const std::size_t bytes = std::min(message_bytes(head), operation.bytes);
  if (head.kind == Kind::message_announced) {
    if (any_gone_.load(std::memory_order_relaxed) && presence_[head.source] == Presence::dead) [[unlikely]] {
      operation.status = Status::peer_gone;  // its payload went with it, and died() was here before
      set_state(operation, State::settled);
      return false;
    }
    operation.grant = terms(operation);
    if (!incoming_.add(operation)) {  // a peer lies: its payload cannot be told from another's
      operation.status = Status::bounds;
      set_state(operation, State::settled);
      return false;
    }
    const bool direct = operation.grant.road == fabric::Road::direct;
    job::Counters::add(direct ? counters.bytes_direct : counters.bytes_buffered, bytes);
    // One chunk, and somebody about to copy it: quicker done than said. Gaps only the asker knows.
    const bool alone = direct && !has_gaps_there(head) &&
                       (!has_transfer(operation.grant.ticket) || operation.scattered != nullptr ||
                        (bytes <= operation.grant.chunk_bytes && operation.waited.load(std::memory_order_relaxed)));
    // A grant of nothing completes the send: its receive is found posted, and there is nothing to wait for.
    granted = !alone || bytes == 0;
    if (granted) grant = operation.grant;
  } else {
    job::Counters::add(counters.bytes_buffered, bytes);
  }
  set_state(operation, State::matched);
  return granted;
}

// How the payload of an announced message is to move.
fabric::Grant MessageRuntime::terms(const Operation& operation) const noexcept {
  const auto announced = operation.head.as<fabric::Announced>();
  const std::uint64_t bytes = std::min<std::uint64_t>(announced.bytes, operation.bytes);
  // Both sides have gaps: both are tended, and each copies its own.
  const bool in_pieces = !engine_.copies_directly(static_cast<int>(operation.head.source)) ||
                         announced.address == fabric::in_pieces_only || is_paged(operation) ||
                         (operation.scattered != nullptr && has_gaps_there(operation.head));
  return {.ticket = announced.ticket,
          .generation = announced.generation,
          .address = reinterpret_cast<std::uint64_t>(operation.buffer),
          .bytes = bytes,
          .road = in_pieces ? fabric::Road::pieces : fabric::Road::direct,
          .chunk_bytes = static_cast<std::uint32_t>(fabric::chunk_bytes_of(bytes, chunk_bytes_max_))};
}

// Of data in several places that is not looked at.
bool MessageRuntime::is_paged(const Operation& operation) const noexcept {
  const job::Session& session = engine_.session();
  return operation.scattered != nullptr ? session.has_paged() : session.is_paged(operation.buffer, operation.bytes);
}

void MessageRuntime::send_grant(int peer, const fabric::Grant& grant) noexcept {
  Head head;
  head.kind = Kind::grant;
  head.source = static_cast<std::uint32_t>(self_);
  head.set(grant);
  send_reply(peer, head);
}

// No receive waits for it; under the lock. Its payload leaves the sender's bulk memory, unless the limit is reached:
// then it stays where it is, and senders are asked to keep theirs.
void MessageRuntime::keep(const Head& head) noexcept {
  Head kept = head;
  std::size_t bytes = 0;
  if (head.kind == Kind::message_bulk) {
    const auto tail = head.as<fabric::Tail>();
    const int source = static_cast<int>(head.source);
    const auto payload = engine_.look(source, tail.place, tail.bytes);
    if (payload.empty()) return;  // names no block: a peer lies
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

// False when there is no memory for a copy.
bool MessageRuntime::keep_payload(Head& head, std::span<const std::byte> payload) noexcept {
  auto* copy = new (std::nothrow) std::byte[payload.size()];
  if (copy == nullptr) return false;
  std::memcpy(copy, payload.data(), payload.size());
  head.kind = Kind::kept;
  head.set(Kept{payload.size(), copy});
  return true;
}

// After the queue of unexpected messages changed, by `payload_bytes` of kept payload; under the lock.
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

// By the asker: the head is here, the payload is fetched.
// By far the most messages.
Step MessageRuntime::take_short(Operation& operation) noexcept {
  const std::size_t bytes = std::min<std::size_t>(operation.head.inline_bytes, operation.bytes);
  if (bytes == 8) {
    std::memcpy(operation.buffer, operation.head.payload.data(), 8);  // without a call
  } else {
    copy_in(operation, 0, operation.head.payload.data(), bytes);
  }
  return complete_receive(operation, Status::ok);
}

Step MessageRuntime::take_payload(Operation& operation) noexcept {
  const Head& head = operation.head;
  if (operation.kind != Operation::Kind::receive) return complete_receive(operation, Status::ok);  // a probe
  const std::size_t bytes = std::min(message_bytes(head), operation.bytes);
  switch (head.kind) {
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
    default: return operation.grant.road == fabric::Road::direct ? copy_from_sender(operation) : take_pieces(operation);
  }
  return complete_receive(operation, Status::ok);
}

void MessageRuntime::give_back_soon(int peer, std::uint64_t place) noexcept {
  const std::lock_guard guard(returns_lock_);
  returns_[returns_count_++] = {peer, place};
  if (returns_count_ == returns_.size()) give_back_now();
}

// Under the lock of returns.
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

Step MessageRuntime::copy_from_sender(Operation& operation) noexcept {
  const fabric::Grant& grant = operation.grant;
  const int peer = static_cast<int>(operation.head.source);
  if (grant.bytes == 0) {
    forget_incoming(operation);
    return complete_receive(operation, Status::ok);  // the grant has told the sender
  }
  if (has_gaps_there(operation.head)) return Step::waiting;  // for `finish`
  if (!has_transfer(grant.ticket)) return copy_alone(operation);
  const std::uint64_t source = operation.head.as<fabric::Announced>().address;
  fabric::TransferMemory& transfer = engine_.transfer_of(peer, grant.ticket);
  const fabric::DirectCopy copy = engine_.direct_copy(peer);
  const auto read = [&](std::uint64_t offset, std::uint64_t bytes) {
    return read_direct(operation, copy, offset, source + offset, bytes);
  };
  if (transfer.copy_chunks(grant.generation, grant.bytes, grant.chunk_bytes, read)) {
    const Status outcome = transfer.outcome();  // before `done`: the sender may use the ticket again
    forget_incoming(operation);
    reply_done(peer, grant.ticket, grant.generation, outcome);
    return complete_receive(operation, outcome);
  }
  return operation.ready() ? advance(operation) : Step::waiting;  // for `finish`, from the sender
}

Step MessageRuntime::copy_alone(Operation& operation) noexcept {
  const fabric::Grant& grant = operation.grant;
  const int peer = static_cast<int>(operation.head.source);
  const std::uint64_t source = operation.head.as<fabric::Announced>().address;
  const Status status = read_direct(operation, engine_.direct_copy(peer), 0, source, grant.bytes);
  forget_incoming(operation);
  reply_done(peer, grant.ticket, grant.generation, status);
  return complete_receive(operation, status);
}

Step MessageRuntime::take_pieces(Operation& operation) noexcept {
  std::vector<fabric::Piece> pieces;
  operation.piece_waiting.store(false, std::memory_order_relaxed);  // a piece that comes now is seen next time
  {
    const std::lock_guard guard(lock_);
    pieces.swap(operation.pieces);
  }
  const int peer = static_cast<int>(operation.head.source);
  for (const fabric::Piece& piece : pieces) {
    const auto payload = engine_.look(peer, piece.place, piece.bytes);
    const bool fits =
        !payload.empty() && piece.offset == operation.moved && piece.bytes <= operation.grant.bytes - piece.offset;
    if (!fits) continue;  // a peer lies
    copy_in(operation, piece.offset, payload.data(), payload.size());
    engine_.give_back(peer, piece.place);
    operation.moved += payload.size();
  }
  if (operation.moved < operation.grant.bytes) return operation.ready() ? Step::retry : Step::waiting;
  forget_incoming(operation);
  reply_done(peer, operation.grant.ticket, operation.grant.generation, Status::ok);
  return complete_receive(operation, Status::ok);
}

Step MessageRuntime::complete_receive(Operation& operation, Status status) noexcept {
  const bool truncated = status == Status::ok && operation.kind == Operation::Kind::receive &&
                         message_bytes(operation.head) > operation.bytes;
  operation.status = truncated ? Status::truncated : status;
  operation.met = true;
  // Only the asker looks at it from here on.
  operation.seen = State::complete;
  operation.state.store(State::complete, std::memory_order_relaxed);
  return Step::done;
}

void MessageRuntime::reply_done(int peer, std::uint32_t ticket, std::uint32_t generation, Status status) noexcept {
  Head head;
  head.kind = Kind::done;
  head.source = static_cast<std::uint32_t>(self_);
  head.set(fabric::Outcome{ticket, generation, static_cast<std::uint32_t>(status), 0});
  send_reply(peer, head);
}

void MessageRuntime::forget_incoming(Operation& operation) noexcept {
  const std::lock_guard guard(lock_);
  incoming_.remove(operation);
}

void MessageRuntime::finished(const Head& head) noexcept {
  const auto outcome = head.as<fabric::Outcome>();
  fabric::Sleeper* to_wake = nullptr;
  {
    const std::lock_guard guard(lock_);
    Operation* operation = incoming_.find(head.source, outcome.ticket, outcome.generation);
    if (operation == nullptr) {  // withdrawn before it met a receive
      if (unexpected_.forget_announced(head.source, outcome.ticket, outcome.generation)) count_unexpected(0);
      return;
    }
    incoming_.remove(*operation);
    operation->status = fabric::status_of(outcome.status);
    become(*operation, State::settled, to_wake);
  }
  if (to_wake != nullptr) to_wake->wake();
}

void MessageRuntime::piece(const Head& head) noexcept {
  const auto piece = head.as<fabric::Piece>();
  fabric::Sleeper* to_wake = nullptr;
  bool unwanted = true;  // the receive was abandoned
  {
    const std::lock_guard guard(lock_);
    Operation* const operation = incoming_.find(head.source, piece.ticket, piece.generation);
    if (operation != nullptr && operation->grant.road == fabric::Road::pieces) {  // or a peer lies
      operation->pieces.push_back(piece);
      to_wake = operation->sleeper;
      operation->piece_waiting.store(true, std::memory_order_release);
      count_change(operation->changes);
      unwanted = false;
    }
  }
  if (unwanted) give_back(static_cast<int>(head.source), piece);
  if (to_wake != nullptr) to_wake->wake();
}

// The announced message is still unexpected: it becomes one whose payload is here. If its receive was posted meanwhile,
// the payload moves as granted, and this copy is not needed.
void MessageRuntime::late(const Head& head) noexcept {
  const auto piece = head.as<fabric::Piece>();
  const int source = static_cast<int>(head.source);
  const auto payload = engine_.look(source, piece.place, piece.bytes);
  if (payload.empty()) return;  // names no block: a peer lies
  bool kept = false;
  {
    const std::lock_guard guard(lock_);
    Head* announced = unexpected_.find_announced(head.source, piece.ticket, piece.generation);
    if (announced != nullptr && message_bytes(*announced) == payload.size() &&
        unexpected_bytes_ < unexpected_bytes_max_) {
      kept = keep_payload(*announced, payload);
      count_unexpected(kept ? static_cast<std::int64_t>(payload.size()) : 0);
    }
  }
  engine_.give_back(source, piece.place);
  if (kept) reply_done(source, piece.ticket, piece.generation, Status::ok);
}

void MessageRuntime::give_back(int peer, const fabric::Piece& piece) noexcept {
  if (!engine_.look(peer, piece.place, piece.bytes).empty()) engine_.give_back(peer, piece.place);
}

}  // namespace tonari::message
