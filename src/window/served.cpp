#include "window/served.hpp"

#include "fabric/bulk.hpp"
#include "window/access.hpp"
#include "window/waiting.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace tonari::window {

using fabric::BulkPlace;
using fabric::Head;
using fabric::Kind;
using fabric::Lane;
using fabric::Step;

namespace {

constexpr std::size_t under_way_max = 8;
constexpr std::size_t offers_max = 64;

/// Waits for something that nobody announces: looks again and again, and moves on what others wait for.
template <class Try>
struct TryUntilDone {
  Try attempt;

  Step step() noexcept { return attempt() ? Step::done : Step::retry; }
  [[nodiscard]] bool ready() const noexcept { return false; }
  bool attach(fabric::Sleeper*) noexcept { return true; }
  void slow() noexcept {}
};

template <class Word>
std::uint64_t apply_to(std::byte* word, const AtomicWords& words) noexcept {
  std::atomic_ref<Word> at(*reinterpret_cast<Word*>(word));
  const auto operand = static_cast<Word>(words.operand);
  auto expected = static_cast<Word>(words.expected);
  switch (words.operation) {  // sequentially consistent throughout: they order like a barrier
    case AtomicOperation::add: return at.fetch_add(operand);
    case AtomicOperation::swap: return at.exchange(operand);
    case AtomicOperation::compare_and_swap: at.compare_exchange_strong(expected, operand); return expected;
    case AtomicOperation::bit_and: return at.fetch_and(operand);
    case AtomicOperation::bit_or: return at.fetch_or(operand);
    case AtomicOperation::bit_xor: return at.fetch_xor(operand);
  }
  return 0;
}

// What a peer may have sent as one.
bool is_service(Service service) noexcept { return service >= Service::pull && service <= Service::atomic; }

// True when `bytes` at `there`, on two pages at most, can be read, or also written. The kernel looks at a word on each
// page, or adds 0 to it, and answers where we would be sent a signal: half as dear as a copy by it.
bool is_reachable(std::byte* there, std::size_t bytes, bool to_write) noexcept {
  constexpr std::uintptr_t page_bytes = 4096;
  constexpr long nobody = 0;
  const auto is_word_reachable = [to_write](std::uintptr_t at) {
    auto* const word = reinterpret_cast<std::uint32_t*>(at & ~std::uintptr_t{3});
    if (to_write) {
      return ::syscall(SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, nobody, nobody, word,
                       FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
    }
    return ::syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, nobody, nobody, word, 0) >= 0 || errno == EAGAIN;
  };
  const auto first = reinterpret_cast<std::uintptr_t>(there);
  const std::uintptr_t last = first + bytes - 1;
  return is_word_reachable(first) && (first / page_bytes == last / page_bytes || is_word_reachable(last));
}

// Between a program's memory and bulk memory, by the kernel, which finds out whether the program's can be read or
// written and answers instead of raising a signal.
Status copy_by_kernel(fabric::Engine& engine, std::byte* memory, std::span<const std::byte> bulk,
                      bool to_memory) noexcept {
  const job::Arena& arena = engine.session().arena();
  const auto place = static_cast<off_t>(arena.place_of(bulk.data()));
  const ssize_t copied = to_memory ? ::pread(arena.memory().number(), memory, bulk.size(), place)
                                   : ::pwrite(arena.memory().number(), memory, bulk.size(), place);
  return copied == static_cast<ssize_t>(bulk.size()) ? Status::ok : Status::bad_address;
}

}  // namespace

std::uint64_t apply_to_word(std::byte* word, const AtomicWords& words) noexcept {
  return words.bytes == 4 ? apply_to<std::uint32_t>(word, words) : apply_to<std::uint64_t>(word, words);
}

// One request on its way.
struct Client::Asked {
  std::atomic<bool> done{true};
  int peer = -1;
  Status status = Status::ok;
  Carried words{};
  fabric::Tickets::Ticket ticket{};
  BulkPlace place{};
  std::byte* local = nullptr;  // of a copy
  std::size_t bytes = 0;
};

// False when the peer is gone: nothing was asked.
bool Client::ask(Asked& asked, int peer, std::uint32_t window, ServiceRequest request) noexcept {
  TryUntilDone take{[&] {
    const auto taken = engine_.tickets().take();
    if (taken) asked.ticket = *taken;
    return taken.has_value();
  }};
  engine_.wait(take);
  asked.peer = peer;
  asked.done.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard guard(lock_);
    asked_[asked.ticket.index] = &asked;
  }
  Head head;
  head.kind = Kind::window_access;
  head.inline_bytes = sizeof request;
  head.source = static_cast<std::uint32_t>(engine_.session().rank());
  head.context = window;
  request.ticket = asked.ticket.index;
  request.generation = asked.ticket.generation;
  head.set(request);
  Status sent = Status::ok;
  TryUntilDone send{[&] { return (sent = engine_.send(peer, head, Lane::request)) != Status::again; }};
  engine_.wait(send);
  if (sent == Status::ok) {
    engine_.nudge(peer);
    return true;
  }
  gone(peer);  // this one too, unless the service thread was first
  return false;
}

void Client::wait(Asked& asked) noexcept {
  // Acquire: the reply's status and value, and what the owner copied.
  wait_until(
      engine_, [&asked] { return asked.done.load(std::memory_order_acquire); }, job::Wait::window, asked.peer);
}

void Client::receive(const Head& head) noexcept {
  const auto reply = head.as<ServiceReply>();
  if (reply.ticket >= fabric::tickets_max) return;  // a peer lies
  const std::lock_guard guard(lock_);
  Asked* const asked = asked_[reply.ticket];
  const bool known =
      asked != nullptr && asked->ticket.generation == reply.generation && asked->peer == static_cast<int>(head.source);
  if (!known) return;
  asked_[reply.ticket] = nullptr;
  asked->words = reply.words;
  asked->status = fabric::status_of(reply.status);
  engine_.tickets().give_back(reply.ticket);
  asked->done.store(true, std::memory_order_release);
}

void Client::gone(int rank) noexcept {
  const std::lock_guard guard(lock_);
  for (Asked*& each : asked_) {
    if (each == nullptr || each->peer != rank) continue;
    Asked* const asked = std::exchange(each, nullptr);
    asked->status = Status::peer_gone;
    engine_.tickets().give_back(asked->ticket.index);
    asked->done.store(true, std::memory_order_release);
  }
}

// Afterwards it may be asked again.
void Client::end_copy(Asked& asked, Service service) noexcept {
  if (asked.bytes == 0) return;
  wait(asked);
  if (service == Service::pull && asked.status == Status::ok) {
    asked.status = copy_by_kernel(engine_, asked.local, {engine_.bulk().at(asked.place), asked.bytes}, true);
  }
  give_back(asked);
}

void Client::give_back(Asked& asked) noexcept {
  fabric::BulkReader::give_back(engine_.bulk_of(engine_.session().rank()), asked.place);
  asked.bytes = 0;
}

Status Client::copy(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
                    std::uint64_t bytes) noexcept {
  if (bytes <= carried_bytes_max) return copy_few(service, window, peer, offset, local, bytes);
  std::array<Asked, under_way_max> under_way;
  Status status = Status::ok;
  std::uint64_t copied = 0;
  const auto end = [&](Asked& asked) {
    end_copy(asked, service);
    if (status == Status::ok) status = asked.status;
  };
  for (std::size_t turn = 0; copied < bytes && status == Status::ok; ++turn) {
    Asked& asked = under_way[turn % under_way_max];
    end(asked);
    if (status != Status::ok) break;
    asked.bytes = std::min<std::uint64_t>(bytes - copied, fabric::bulk_tail_bytes_max);
    asked.local = local + copied;
    TryUntilDone allocate{[&] {  // this rank reads it in the end, whoever dies
      const auto place = engine_.bulk().allocate(asked.bytes, engine_.session().rank());
      if (place) asked.place = *place;
      return place.has_value();
    }};
    engine_.wait(allocate);
    if (service == Service::push) {
      status = copy_by_kernel(engine_, asked.local, {engine_.bulk().at(asked.place), asked.bytes}, false);
      if (status != Status::ok) {
        give_back(asked);
        break;
      }
    }
    ServiceRequest request{};
    request.service = service;
    request.offset = offset + copied;
    request.words[0] = asked.place.value;
    request.bytes = static_cast<std::uint32_t>(asked.bytes);
    (void)ask(asked, peer, window, request);
    copied += asked.bytes;
  }
  for (Asked& asked : under_way) end(asked);
  return status;
}

Status Client::copy_few(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
                        std::size_t bytes) noexcept {
  Asked asked;
  ServiceRequest request{};
  request.service = service;
  request.offset = offset;
  request.bytes = static_cast<std::uint32_t>(bytes);
  request.carried = 1;
  if (!is_reachable(local, bytes, service == Service::pull)) return Status::bad_address;
  if (service == Service::push) std::memcpy(request.words.data(), local, bytes);
  (void)ask(asked, peer, window, request);
  wait(asked);
  if (service == Service::pull && asked.status == Status::ok) std::memcpy(local, asked.words.data(), bytes);
  return asked.status;
}

Fetched<std::uint64_t> Client::apply(std::uint32_t window, int peer, std::uint64_t offset,
                                     const AtomicWords& words) noexcept {
  Asked asked;
  ServiceRequest request{};
  request.service = Service::atomic;
  request.offset = offset;
  request.bytes = words.bytes;
  request.operation = words.operation;
  request.words = {words.operand, words.expected};
  (void)ask(asked, peer, window, request);
  wait(asked);
  return {asked.status, asked.words[0]};
}

void Server::receive(const Head& request) noexcept {
  {
    const std::lock_guard guard(lock_);
    // Accesses are as many as all askers have tickets; an offer may outlive its ticket, and need not be taken up.
    if (request.kind == Kind::window_help && requests_.size() >= offers_max) return;
    requests_.push_back(request);
  }
  engine_.add_errand();
}

bool Server::next(Head& request) noexcept {
  {
    const std::lock_guard guard(lock_);
    if (requests_.empty()) return false;
    request = requests_.front();
    requests_.pop_front();
  }
  engine_.finish_errand();
  return true;
}

void Server::serve(const Access* access, const Head& head) noexcept {
  const auto request = head.as<ServiceRequest>();
  const int peer = static_cast<int>(head.source);
  if (head.source >= static_cast<std::uint32_t>(engine_.session().size())) return;  // a peer lies
  ServiceReply reply{
      .words = {}, .ticket = request.ticket, .generation = request.generation, .status = 0, .reserved = 0};
  Status status = is_service(request.service) ? Status::bounds : Status::invalid;  // no such window; or a peer lies
  if (status == Status::bounds && access != nullptr) {
    const Rights needed = request.service == Service::pull   ? Rights::read
                          : request.service == Service::push ? Rights::write
                                                             : Rights::atomic;
    std::byte* there = nullptr;
    status = access->check_request(peer, request.offset, request.bytes, needed, there);
    if (status == Status::ok) status = perform(request, peer, there, reply);
  }
  reply.status = static_cast<std::uint32_t>(status);

  Head answer;
  answer.kind = Kind::window_done;
  answer.inline_bytes = sizeof reply;
  answer.source = static_cast<std::uint32_t>(engine_.session().rank());
  answer.context = head.context;
  answer.set(reply);
  while (engine_.send(peer, answer, Lane::reply) == Status::again) ::sched_yield();  // has room but for a moment
}

Status Server::perform(const ServiceRequest& request, int peer, std::byte* there, ServiceReply& reply) const noexcept {
  const std::size_t bytes = request.bytes;
  if (request.service == Service::atomic) {
    if (bytes > 8) return Status::invalid;
    const AtomicWords words{request.operation, static_cast<std::uint8_t>(bytes), request.words[0], request.words[1]};
    if (!is_sane(words) || reinterpret_cast<std::uintptr_t>(there) % bytes != 0) return Status::invalid;
    if (!is_reachable(there, bytes, true)) return Status::bad_address;
    reply.words[0] = apply_to_word(there, words);
    return Status::ok;
  }
  if (request.carried != 1) return copy(request, peer, there);
  if (bytes == 0 || bytes > carried_bytes_max) return Status::invalid;  // a peer lies
  if (!is_reachable(there, bytes, request.service == Service::push)) return Status::bad_address;
  if (request.service == Service::push) {
    std::memcpy(there, request.words.data(), bytes);
  } else {
    std::memcpy(reply.words.data(), there, bytes);
  }
  return Status::ok;
}

// Between this program's memory and the asker's bulk memory.
Status Server::copy(const ServiceRequest& request, int peer, std::byte* there) const noexcept {
  const auto block = fabric::BulkReader::look(engine_.bulk_of(peer), {request.words[0]}, request.bytes);
  if (block.size() != request.bytes) return Status::invalid;
  return copy_by_kernel(engine_, there, block, request.service == Service::push);
}

}  // namespace tonari::window
