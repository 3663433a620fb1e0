#include "window/served.hpp"

#include "fabric/bulk.hpp"
#include "window/access.hpp"
#include "window/relay.hpp"
#include "window/waiting.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
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

// What a peer may have sent as one.
bool is_service(Service service) noexcept { return service >= Service::pull && service <= Service::relay; }

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

// By the kernel, or where that is not permitted, after it has looked at each page.
Status copy_guarded(const job::Session& session, std::byte* memory, std::byte* other, std::size_t bytes,
                    bool to_memory) noexcept {
  if (session.guarded_copies()) {
    const fabric::DirectCopy copy(::getpid(), false);
    const auto there = reinterpret_cast<std::uint64_t>(memory);
    return to_memory ? copy.write(there, other, bytes) : copy.read(other, there, bytes);
  }
  constexpr std::size_t looked_at_most = 4096;  // two pages at most
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t piece = std::min(bytes - at, looked_at_most);
    if (!is_reachable(memory + at, piece, to_memory)) return Status::bad_address;
    copy_bytes(to_memory ? memory + at : other + at, to_memory ? other + at : memory + at, piece);
    at += piece;
  }
  return Status::ok;
}

Status copy_local(const job::Session& session, bool in_program, std::byte* local, std::byte* other, std::size_t bytes,
                  bool to_local) noexcept {
  if (bytes == 0) return Status::ok;
  if (in_program) return copy_guarded(session, local, other, bytes, to_local);
  copy_bytes(to_local ? local : other, to_local ? other : local, bytes);
  return Status::ok;
}

BulkPlace Client::allocate(std::size_t bytes, int peer) noexcept {
  BulkPlace found;
  TryUntilDone attempt{[&] {
    const auto place = engine_.bulk().allocate(bytes, peer);
    if (place) found = *place;
    return place.has_value();
  }};
  engine_.wait(attempt);
  return found;
}

// When the peer is gone, that is the answer.
void Client::ask(Asked& asked, int peer, std::uint32_t window, ServiceRequest request, Kind kind) noexcept {
  TryUntilDone take{[&] {
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
  Status sent = Status::ok;
  TryUntilDone send{[&] { return (sent = engine_.send(peer, head, Lane::request)) != Status::again; }};
  engine_.wait(send);
  if (sent == Status::ok) return engine_.nudge(peer);
  if (const auto tail = fabric::tail_name(kind)) give_back(BulkPlace{fabric::read_payload(head, tail->place)});
  gone(peer);  // this one too, unless the service thread was first
}

void Client::give_back(BulkPlace block) noexcept {
  fabric::BulkReader::give_back(engine_.bulk_of(engine_.session().rank()), block);
}

std::span<const std::byte> Client::data_of(const Asked& asked) const noexcept {
  if (asked.has_tail) return engine_.look(asked.peer, asked.words[1], asked.words[0]);
  return std::as_bytes(std::span(asked.words));
}

void Client::give_back_data(Asked& asked) noexcept {
  engine_.give_back(asked.peer, asked.words[1]);
  asked.has_tail = false;
}

void Client::wait(Asked& asked) noexcept {
  // Acquire: the reply's status and value, and what the owner copied.
  wait_until(
      engine_, [&asked] { return asked.done.load(std::memory_order_acquire); }, job::Wait::window, asked.peer);
}

void Client::receive(const Head& head) noexcept {
  const auto reply = head.as<ServiceReply>();
  const bool has_tail = head.kind == Kind::window_data;
  if (!take(head, reply, has_tail) && has_tail && head.source < static_cast<std::uint32_t>(engine_.session().size())) {
    engine_.give_back(static_cast<int>(head.source), reply.words[1]);
  }
}

// False: nobody asked for it, or does no longer, or not for a tail.
bool Client::take(const Head& head, const ServiceReply& reply, bool has_tail) noexcept {
  if (reply.ticket >= fabric::tickets_max) return false;  // a peer lies
  const std::lock_guard guard(lock_);
  Asked* const asked = asked_[reply.ticket];
  const bool known =
      asked != nullptr && asked->ticket.generation == reply.generation && asked->peer == static_cast<int>(head.source);
  if (!known) return false;
  const bool takes_tail = !has_tail || asked->takes_tail;  // else a peer lies
  asked_[reply.ticket] = nullptr;
  asked->words = reply.words;
  asked->has_tail = has_tail && takes_tail;
  asked->status = takes_tail ? fabric::status_of(reply.status) : Status::invalid;
  engine_.tickets().give_back(reply.ticket);
  asked->done.store(true, std::memory_order_release);
  return takes_tail;
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
  give_back(asked.place);
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
    asked.place = allocate(asked.bytes, engine_.session().rank());  // which reads it in the end, whoever dies
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
    ask(asked, peer, window, request);
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
  ask(asked, peer, window, request);
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
  ask(asked, peer, window, request);
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

/// What a request is answered by: words, or a tail.
struct Server::Answer {
  ServiceReply reply{};
  std::optional<BulkPlace> data;
};

/// What of the owner's part a request from another host names, and the data that come with it.
class Server::Named {
 public:
  Named(const ServiceRequest& request, std::span<const std::byte> tail) noexcept
      : first_{request.offset, request.bytes} {
    std::memcpy(&beside_, &request.words.back(), sizeof beside_);
    const bool carried = tail.empty() && request.service == Service::push;
    if (carried) tail = std::as_bytes(std::span(request.words)).first(std::min<std::size_t>(request.bytes, 16));
    const std::uint64_t list_bytes = std::uint64_t{beside_.stretches} * sizeof(Stretch);
    if (list_bytes > tail.size()) {
      beside_.stretches = 0;
      bytes_ = ~std::uint64_t{0};  // a peer lies
      return;
    }
    list_ = tail.first(list_bytes);
    data_ = tail.subspan(list_bytes);
    for (std::size_t i = 0; i < count(); ++i) bytes_ += at(i).bytes;
  }
  struct Place {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  [[nodiscard]] std::size_t count() const noexcept { return beside_.stretches == 0 ? 1 : beside_.stretches; }
  [[nodiscard]] Place at(std::size_t index) const noexcept {
    if (beside_.stretches == 0) return first_;
    Stretch stretch;
    std::memcpy(&stretch, list_.data() + index * sizeof stretch, sizeof stretch);
    const std::uint64_t offset = first_.offset + stretch.offset;
    return {offset < first_.offset ? ~std::uint64_t{0} : offset, stretch.bytes};
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<const std::byte> data() const noexcept { return data_; }
  [[nodiscard]] std::uint32_t notification() const noexcept { return beside_.notification; }

 private:
  Place first_;
  Beside beside_{};
  std::span<const std::byte> list_;
  std::span<const std::byte> data_;
  std::uint64_t bytes_ = 0;
};

namespace {

Rights needed_for(Service service) noexcept {
  switch (service) {
    case Service::pull: return Rights::read;
    case Service::push: return Rights::write;
    default: return Rights::atomic;
  }
}

}  // namespace

bool Server::serve(Access* access, const Head& head) noexcept {
  const auto request = head.as<ServiceRequest>();
  const int peer = static_cast<int>(head.source);
  if (head.source >= static_cast<std::uint32_t>(engine_.session().size())) return true;  // a peer lies
  const bool has_tail = head.kind == Kind::window_push;
  Answer answer;
  answer.reply.ticket = request.ticket;
  answer.reply.generation = request.generation;
  if (request.service == Service::relay) answer.reply.words[0] = all_left;
  Status status = is_service(request.service) ? Status::bounds : Status::invalid;  // no such window; or a peer lies
  if (status == Status::bounds && access != nullptr) {
    if (engine_.is_far(peer)) {
      const auto tail =
          has_tail ? engine_.look(peer, request.words[1], request.words[0]) : std::span<const std::byte>();
      status = perform_far(*access, request, peer, tail, answer);
    } else {
      status = has_tail ? Status::invalid : perform_near(*access, request, peer, answer);
    }
  }
  if (status == Status::again) return false;
  if (has_tail) engine_.give_back(peer, request.words[1]);
  answer.reply.status = static_cast<std::uint32_t>(status);
  reply(head, answer);
  return true;
}

void Server::reply(const Head& request, const Answer& answer) noexcept {
  Head head;
  head.kind = answer.data ? Kind::window_data : Kind::window_done;
  head.inline_bytes = sizeof answer.reply;
  head.source = static_cast<std::uint32_t>(engine_.session().rank());
  head.context = request.context;
  head.set(answer.reply);
  const int peer = static_cast<int>(request.source);
  if (engine_.is_far(peer)) return outbox_.post(peer, head, Lane::reply);
  while (engine_.send(peer, head, Lane::reply) == Status::again) ::sched_yield();  // has room but for a moment
}

Status Server::perform_near(const Access& access, const ServiceRequest& request, int peer,
                            Answer& answer) const noexcept {
  if (request.service > Service::atomic) return Status::invalid;  // a peer lies
  std::byte* there = nullptr;
  const Status status = access.check_request(peer, request.offset, request.bytes, needed_for(request.service), there);
  return status == Status::ok ? perform(request, peer, there, answer.reply) : status;
}

Status Server::perform_far(Access& access, const ServiceRequest& request, int peer, std::span<const std::byte> tail,
                           Answer& answer) noexcept {
  switch (request.service) {
    case Service::atomic: return perform_near(access, request, peer, answer);
    case Service::reach: {
      Reached reached{};
      const Status status = access.admit(peer, reached);
      answer.reply.words = std::bit_cast<Carried>(reached);
      return status;
    }
    case Service::push: return take(access, request, peer, Named(request, tail));
    case Service::pull: return give(access, peer, Named(request, tail), answer);
    case Service::relay: {
      const auto beside = std::bit_cast<Beside>(request.words.back());
      return relay(access, peer, tail, beside.stretches, answer.reply.words[0]);
    }
  }
  return Status::invalid;
}

// A push: nothing is written unless all may be.
Status Server::take(Access& access, const ServiceRequest& request, int peer, const Named& named) noexcept {
  if (named.bytes() != named.data().size() || request.bytes != named.bytes()) return Status::invalid;  // a peer lies
  std::byte* there = nullptr;
  for (std::size_t i = 0; i < named.count(); ++i) {
    const Status status = access.check_request(peer, named.at(i).offset, named.at(i).bytes, Rights::write, there);
    if (status != Status::ok) return status;
  }
  const bool counts = named.notification() != 0;
  if (counts && !access.has_notification(named.notification() - 1)) return Status::bounds;
  auto* from = const_cast<std::byte*>(named.data().data());  // only read
  for (std::size_t i = 0; i < named.count(); ++i) {
    const auto [offset, bytes] = named.at(i);
    // A part that is freed meanwhile is not free before this is over: Runtime::remove().
    Status status = access.check_request(peer, offset, bytes, Rights::write, there);
    if (status == Status::ok) status = copy_local(engine_.session(), access.is_in_program(), there, from, bytes, true);
    if (status != Status::ok) return status;
    from += bytes;
  }
  if (counts) access.count_notification(named.notification() - 1);
  return Status::ok;
}

// A pull.
Status Server::give(const Access& access, int peer, const Named& named, Answer& answer) noexcept {
  if (named.bytes() > fabric::bulk_tail_bytes_max) return Status::invalid;  // a peer lies
  std::byte* there = nullptr;
  for (std::size_t i = 0; i < named.count(); ++i) {
    const Status status = access.check_request(peer, named.at(i).offset, named.at(i).bytes, Rights::read, there);
    if (status != Status::ok) return status;
  }
  auto* to = reinterpret_cast<std::byte*>(answer.reply.words.data());
  if (named.bytes() > carried_bytes_max) {
    answer.data = engine_.bulk().allocate(named.bytes(), peer);
    if (!answer.data) return Status::again;
    answer.reply.words = {named.bytes(), answer.data->value, 0};
    to = engine_.bulk().at(*answer.data);
  }
  Status status = Status::ok;
  for (std::size_t i = 0; i < named.count() && status == Status::ok; ++i) {
    const auto [offset, bytes] = named.at(i);
    status = access.check_request(peer, offset, bytes, Rights::read, there);
    if (status == Status::ok) status = copy_local(engine_.session(), access.is_in_program(), there, to, bytes, false);
    to += bytes;
  }
  if (status != Status::ok && answer.data) {
    fabric::BulkReader::give_back(engine_.bulk_of(engine_.session().rank()), *answer.data);
    answer.data.reset();
  }
  return status;
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
