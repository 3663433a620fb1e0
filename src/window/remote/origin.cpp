#include "fabric/pipeline.hpp"
#include "fabric/wait.hpp"
#include "window/remote/target.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

// The origin's side.
namespace tonari::window {

using fabric::BulkPlace;
using fabric::Head;
using fabric::Lane;

namespace {

constexpr std::size_t under_way_max = 8;

}  // namespace

BulkPlace Origin::allocate(std::size_t bytes, int peer) noexcept {
  BulkPlace found;
  fabric::TryUntilDone attempt{[&] {
    const auto place = engine_.bulk().allocate(bytes, peer);
    if (place) found = *place;
    return place.has_value();
  }};
  engine_.wait(attempt);
  return found;
}

// If the peer is gone, the request ends with peer_gone.
void Origin::ask(PendingRequest& asked, int peer, std::uint32_t window, ServiceRequest request, Kind kind) noexcept {
  fabric::TryUntilDone take{[&] {
    const auto taken = engine_.tickets().take();
    if (taken) asked.ticket = *taken;
    return taken.has_value();
  }};
  engine_.wait(take);
  asked.peer = peer;
  asked.has_tail = false;
  asked.done.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard guard(lock_);
    asked_[asked.ticket.index] = &asked;
  }
  request.ticket = asked.ticket.index;
  request.generation = asked.ticket.generation;
  Head head;
  head.kind = kind;
  head.inline_bytes = sizeof request;
  head.source = static_cast<std::uint32_t>(engine_.session().rank());
  head.context = window;
  head.set(request);
  Status sent = engine_.send(peer, head, Lane::request);
  if (sent == Status::again) {
    engine_.wake_peer(peer);  // it then makes room
    fabric::TryUntilDone send{[&] { return (sent = engine_.send(peer, head, Lane::request)) != Status::again; }};
    engine_.wait(send);
  }
  if (sent == Status::ok) return engine_.wake_peer(peer);
  if (head.kind.has_tail()) give_back(BulkPlace{head.as<fabric::Tail>().place});
  gone(peer);  // ends this request, too, unless the service thread already has
}

void Origin::give_back(BulkPlace block) noexcept {
  fabric::BulkReader::give_back(engine_.bulk_of(engine_.session().rank()), block);
}

std::span<const std::byte> Origin::data_of(const PendingRequest& asked) const noexcept {
  if (asked.has_tail) return engine_.look(asked.peer, asked.words[1], asked.words[0]);
  return std::as_bytes(std::span(asked.words));
}

void Origin::give_back_data(PendingRequest& asked) noexcept {
  engine_.give_back(asked.peer, asked.words[1]);
  asked.has_tail = false;
}

void Origin::wait(PendingRequest& asked) noexcept {
  // Acquire: the reply's status and value, and the copied data.
  fabric::wait_until(
      engine_, [&asked] { return asked.done.load(std::memory_order_acquire); }, job::Wait::window, asked.peer);
}

void Origin::receive(const Head& head) noexcept {
  const auto reply = head.as<ServiceReply>();
  const bool has_tail = head.kind == Kind::window_data;
  if (!take(head, reply, has_tail) && has_tail && head.source < static_cast<std::uint32_t>(engine_.session().size())) {
    engine_.give_back(static_cast<int>(head.source), reply.words[1]);
  }
}

// Returns false if the request is unknown or over, or takes no tail.
bool Origin::take(const Head& head, const ServiceReply& reply, bool has_tail) noexcept {
  if (reply.ticket >= fabric::tickets_max) return false;  // malformed: drop it
  const std::lock_guard guard(lock_);
  PendingRequest* const asked = asked_[reply.ticket];
  const bool known =
      asked != nullptr && asked->ticket.generation == reply.generation && asked->peer == static_cast<int>(head.source);
  if (!known) return false;
  const bool takes_tail = !has_tail || asked->takes_tail;  // otherwise malformed
  asked_[reply.ticket] = nullptr;
  asked->words = reply.words;
  asked->has_tail = has_tail && takes_tail;
  asked->status = takes_tail ? fabric::status_of(reply.status) : Status::invalid;
  engine_.tickets().give_back(reply.ticket);
  asked->done.store(true, std::memory_order_release);
  return takes_tail;
}

void Origin::gone(int rank) noexcept {
  const std::lock_guard guard(lock_);
  for (PendingRequest*& each : asked_) {
    if (each == nullptr || each->peer != rank) continue;
    PendingRequest* const asked = std::exchange(each, nullptr);
    asked->status = Status::peer_gone;
    engine_.tickets().give_back(asked->ticket.index);
    asked->done.store(true, std::memory_order_release);
  }
}

// Waits for a piece. Its PendingRequest can be used again afterwards.
void Origin::end_copy(PendingRequest& asked, Service service) noexcept {
  wait(asked);
  if (service == Service::pull && asked.status == Status::ok) {
    asked.status = copy_by_kernel(engine_, asked.local, {engine_.bulk().at(asked.place), asked.bytes}, true);
  }
  give_back(asked.place);
}

Status Origin::copy(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
                    std::uint64_t bytes) noexcept {
  if (bytes <= carried_bytes_max) return copy_few(service, window, peer, offset, local, bytes);
  fabric::Pipeline<PendingRequest, under_way_max> under_way;
  Status status = Status::ok;
  const auto end = [&](PendingRequest& asked) {
    end_copy(asked, service);
    if (status == Status::ok) status = asked.status;
  };
  for (std::uint64_t copied = 0; copied < bytes && status == Status::ok;) {
    PendingRequest& asked = under_way.next(end);
    asked.bytes = std::min<std::uint64_t>(bytes - copied, fabric::bulk_tail_bytes_max);
    asked.local = local + copied;
    asked.place = allocate_or([&] { return under_way.end_oldest(end); }, asked.bytes);
    if (service == Service::push && status == Status::ok) {
      status = copy_by_kernel(engine_, asked.local, {engine_.bulk().at(asked.place), asked.bytes}, false);
    }
    if (status != Status::ok) {
      give_back(asked.place);
      break;
    }
    ServiceRequest request{};
    request.service = service;
    request.offset = offset + copied;
    request.words[0] = asked.place.value;
    request.bytes = static_cast<std::uint32_t>(asked.bytes);
    ask(asked, peer, window, request);
    under_way.begin();
    copied += asked.bytes;
  }
  under_way.end_all(end);
  return status;
}

Status Origin::copy_few(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
                        std::size_t bytes) noexcept {
  PendingRequest asked;
  ServiceRequest request{};
  request.service = service;
  request.offset = offset;
  request.bytes = static_cast<std::uint32_t>(bytes);
  request.carried = 1;
  // accessing paged memory brings the pages, so the kernel's check does not apply
  const bool is_paged = engine_.session().is_paged(local, bytes);
  if (!is_paged && !is_reachable(local, bytes, service == Service::pull)) return Status::bad_address;
  if (service == Service::push) std::memcpy(request.words.data(), local, bytes);
  ask(asked, peer, window, request);
  wait(asked);
  if (service == Service::pull && asked.status == Status::ok) std::memcpy(local, asked.words.data(), bytes);
  return asked.status;
}

Result<std::uint64_t> Origin::apply(std::uint32_t window, int peer, std::uint64_t offset,
                                    const detail::AtomicWords& words) noexcept {
  PendingRequest asked;
  ServiceRequest request{};
  request.service = Service::atomic;
  request.offset = offset;
  request.bytes = words.bytes;
  request.operation = words.operation;
  request.words = {words.operand, words.expected};
  ask(asked, peer, window, request);
  wait(asked);
  return {asked.status, asked.words[0]};
}

}  // namespace tonari::window
