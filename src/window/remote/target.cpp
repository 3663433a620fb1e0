#include "window/remote/target.hpp"

#include "fabric/bulk.hpp"
#include "window/local/checked_copy.hpp"
#include "window/remote/multicast.hpp"
#include "window/state/window_state.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

// The target's side.
namespace tonari::window {

using fabric::BulkPlace;
using fabric::Head;
using fabric::Lane;

namespace {

constexpr std::size_t offers_max = 64;

// Checks the number that a peer has sent.
bool is_service(Service service) noexcept { return service >= Service::pull && service <= Service::key; }

}  // namespace

void Target::receive(const Head& request) noexcept {
  {
    const std::lock_guard guard(lock_);
    // There are as many accesses as all origins have tickets. An offer may outlive its ticket, and may be ignored.
    if (request.kind == Kind::window_help && requests_.size() >= offers_max) return;
    requests_.push_back(request);
  }
  engine_.handlers().add_deferred_work();
}

bool Target::next(Head& request) noexcept {
  {
    const std::lock_guard guard(lock_);
    if (requests_.empty()) return false;
    request = requests_.front();
    requests_.pop_front();
  }
  engine_.handlers().finish_deferred_work();
  return true;
}

/// The reply to a request: words, or a tail.
struct Target::Answer {
  ServiceReply reply{};
  std::optional<BulkPlace> data;
};

/// The places in the target's part that a request from another host names, and the data that come with it.
class Target::Named {
 public:
  Named(const ServiceRequest& request, std::span<const std::byte> tail) noexcept
      : first_{request.offset, request.bytes} {
    std::memcpy(&extras_, &request.words.back(), sizeof extras_);
    const bool carried = tail.empty() && request.service == Service::push;
    if (carried) tail = std::as_bytes(std::span(request.words)).first(std::min<std::size_t>(request.bytes, 16));
    const std::uint64_t list_bytes = std::uint64_t{extras_.stretches} * sizeof(Stretch);
    if (list_bytes > tail.size()) {
      extras_.stretches = 0;
      bytes_ = ~std::uint64_t{0};  // malformed: take() and give() refuse it
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
  [[nodiscard]] std::size_t count() const noexcept { return extras_.stretches == 0 ? 1 : extras_.stretches; }
  [[nodiscard]] Place at(std::size_t index) const noexcept {
    if (extras_.stretches == 0) return first_;
    Stretch stretch;
    std::memcpy(&stretch, list_.data() + index * sizeof stretch, sizeof stretch);
    const std::uint64_t offset = first_.offset + stretch.offset;
    return {offset < first_.offset ? ~std::uint64_t{0} : offset, stretch.bytes};
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<const std::byte> data() const noexcept { return data_; }
  [[nodiscard]] std::uint32_t notification() const noexcept { return extras_.notification; }

 private:
  Place first_;
  RequestExtras extras_{};
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

bool Target::serve(WindowState* state, const Head& head) noexcept {
  const auto request = head.as<ServiceRequest>();
  const int peer = static_cast<int>(head.source);
  if (head.source >= static_cast<std::uint32_t>(engine_.session().size())) return true;  // malformed: drop it
  const bool has_tail = head.kind == Kind::window_push;
  Answer answer;
  answer.reply.ticket = request.ticket;
  if (request.service == Service::relay) answer.reply.words[0] = all_left;
  Status status = is_service(request.service) ? Status::bounds : Status::invalid;  // no such window; or malformed
  if (status == Status::bounds && state != nullptr) {
    if (engine_.is_remote(peer)) {
      const auto tail =
          has_tail ? engine_.look(peer, request.words[1], request.words[0]) : std::span<const std::byte>();
      status = perform_remote(*state, request, peer, tail, answer);
    } else {
      status = has_tail ? Status::invalid : perform_near(*state, request, peer, answer);
    }
  }
  if (status == Status::again) return false;
  if (has_tail) engine_.give_back(peer, request.words[1]);
  answer.reply.status = static_cast<std::uint32_t>(status);
  reply(head, answer);
  return true;
}

void Target::reply(const Head& request, const Answer& answer) noexcept {
  const Kind kind = answer.data ? Kind::window_data : Kind::window_done;
  const Head head = head_of(kind, engine_.session().rank(), answer.reply, request.context);
  const int peer = static_cast<int>(request.source);
  if (engine_.is_remote(peer)) return send_queue_.post(peer, head, Lane::reply);
  while (engine_.send(peer, head, Lane::reply) == Status::again) ::sched_yield();  // full only for moments
}

Status Target::perform_near(const WindowState& state, const ServiceRequest& request, int peer,
                            Answer& answer) const noexcept {
  if (request.service > Service::atomic) return Status::invalid;  // malformed
  std::byte* there = nullptr;
  const Status status =
      state.parts().check_request(peer, request.offset, request.bytes, needed_for(request.service), there);
  return status == Status::ok ? perform(request, peer, there, answer.reply) : status;
}

Status Target::perform_remote(WindowState& state, const ServiceRequest& request, int peer,
                              std::span<const std::byte> tail, Answer& answer) noexcept {
  switch (request.service) {
    case Service::atomic: return perform_near(state, request, peer, answer);
    case Service::reach: {
      Reached reached{};
      const Status status = state.admit(peer, reached);
      answer.reply.words = std::bit_cast<Carried>(reached);
      return status;
    }
    case Service::push: return take(state, request, peer, Named(request, tail));
    case Service::pull: return give(state, peer, Named(request, tail), answer);
    case Service::relay: {
      const auto extras = std::bit_cast<RequestExtras>(request.words.back());
      return relay(state, peer, tail, extras.stretches, answer.reply.words[0]);
    }
    case Service::key: return give_key(state, peer, answer);
  }
  return Status::invalid;
}

// Serves a push. Nothing is written unless everything may be.
Status Target::take(WindowState& state, const ServiceRequest& request, int peer, const Named& named) noexcept {
  if (named.bytes() != named.data().size() || request.bytes != named.bytes()) return Status::invalid;  // malformed
  std::byte* there = nullptr;
  for (std::size_t i = 0; i < named.count(); ++i) {
    const Status status =
        state.parts().check_request(peer, named.at(i).offset, named.at(i).bytes, Rights::write, there);
    if (status != Status::ok) return status;
  }
  const bool counts = named.notification() != 0;
  if (counts && !state.has_notification(named.notification() - 1)) return Status::bounds;
  auto data = named.data();
  for (std::size_t i = 0; i < named.count(); ++i) {
    const auto [offset, bytes] = named.at(i);
    // A part that is freed meanwhile stays until this is over: WindowRuntime::remove().
    Status status = state.parts().check_request(peer, offset, bytes, Rights::write, there);
    if (status == Status::ok) {
      status = store_local(engine_.session(), state.parts().own_in_program(), there, data.first(bytes));
    }
    if (status != Status::ok) return status;
    data = data.subspan(bytes);
  }
  if (counts) state.count_notification(named.notification() - 1);
  return Status::ok;
}

// Serves a pull.
Status Target::give(const WindowState& state, int peer, const Named& named, Answer& answer) noexcept {
  if (named.bytes() > fabric::bulk_tail_bytes_max) return Status::invalid;  // malformed
  std::byte* there = nullptr;
  for (std::size_t i = 0; i < named.count(); ++i) {
    const Status status = state.parts().check_request(peer, named.at(i).offset, named.at(i).bytes, Rights::read, there);
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
    status = state.parts().check_request(peer, offset, bytes, Rights::read, there);
    if (status == Status::ok)
      status = load_local(engine_.session(), state.parts().own_in_program(), {to, bytes}, there);
    to += bytes;
  }
  if (status != Status::ok && answer.data) {
    fabric::BulkReader::give_back(engine_.bulk_of(engine_.session().rank()), *answer.data);
    answer.data.reset();
  }
  return status;
}

Status Target::give_key(WindowState& state, int peer, Answer& answer) noexcept {
  const std::vector<std::byte> key = state.key_for(peer);
  if (key.empty()) return Status::denied;
  answer.data = engine_.bulk().allocate(key.size(), peer);
  if (!answer.data) {
    state.key_not_given(peer);  // it asks again or does without; this rank must not wait for it
    return Status::again;
  }
  std::ranges::copy(key, engine_.bulk().at(*answer.data));
  answer.reply.words = {key.size(), answer.data->value, 0};
  return Status::ok;
}

Status Target::perform(const ServiceRequest& request, int peer, std::byte* there, ServiceReply& reply) const noexcept {
  const std::size_t bytes = request.bytes;
  if (request.service == Service::atomic) {
    if (bytes > 8) return Status::invalid;
    const detail::AtomicWords words{request.operation, static_cast<std::uint8_t>(bytes), request.words[0],
                                    request.words[1]};
    if (!is_sane(words) || reinterpret_cast<std::uintptr_t>(there) % bytes != 0) return Status::invalid;
    if (!is_writable(there, bytes)) return Status::bad_address;
    reply.words[0] = apply_to_word(there, words);
    return Status::ok;
  }
  if (request.carried != 1) return copy(request, peer, there);
  if (bytes == 0 || bytes > carried_bytes_max) return Status::invalid;  // malformed
  const bool is_push = request.service == Service::push;
  if (!(is_push ? is_writable(there, bytes) : is_readable(there, bytes))) return Status::bad_address;
  if (is_push) {
    std::memcpy(there, request.words.data(), bytes);
  } else {
    std::memcpy(reply.words.data(), there, bytes);
  }
  return Status::ok;
}

// Copies between this program's memory and the origin's bulk memory.
Status Target::copy(const ServiceRequest& request, int peer, std::byte* there) const noexcept {
  const auto block = fabric::BulkReader::block(engine_.bulk_of(peer), {request.words[0]}, request.bytes);
  if (block.size() != request.bytes) return Status::invalid;
  if (request.service == Service::push) return store_by_kernel(engine_, there, block);
  return load_by_kernel(engine_, block, there);
}

}  // namespace tonari::window
