#pragma once

#include "harness/wire.hpp"

#include <tonari/tonari.hpp>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

namespace tonari::bench {

/// tonari as a Wire.
class TonariWire {
 public:
  using Request = tonari::Request;
  static constexpr int any_source = Rank::any.value();

  explicit TonariWire(Communicator& communicator) noexcept : communicator_(communicator) {}

  int rank() const noexcept { return communicator_.rank().value(); }
  int size() const noexcept { return communicator_.size(); }
  std::string system() const { return "tonari"; }

  void send(std::span<const std::byte> bytes, int rank, int tag) {
    check(communicator_.send_bytes(bytes, Rank{rank}, Tag{tag}));
  }
  void receive(std::span<std::byte> bytes, int rank, int tag) {
    check(communicator_.receive_bytes(bytes, Rank{rank}, Tag{tag}).status);
  }
  Arrived receive_from(std::span<std::byte> bytes, int rank, int tag) {
    const Result<Envelope> result = communicator_.receive_bytes(bytes, Rank{rank}, Tag{tag});
    check(result.status);
    return {result.value.source.value(), result.value.tag.value()};
  }
  Request start_send(std::span<const std::byte> bytes, int rank, int tag) {
    return communicator_.start_send_bytes(bytes, Rank{rank}, Tag{tag});
  }
  Request start_receive(std::span<std::byte> bytes, int rank, int tag) {
    return communicator_.start_receive_bytes(bytes, Rank{rank}, Tag{tag});
  }
  void wait(Request& request) { check(request.wait().status); }
  void wait_all(std::span<Request> requests) { check(tonari::wait_all(requests)); }
  std::size_t wait_any(std::span<Request> requests) {
    const auto index = tonari::wait_any(requests);
    check(requests[index].wait().status);
    return index;
  }
  bool test(Request& request) {
    const auto result = request.test();
    if (result) check(result->status);
    return result.has_value();
  }
  void cancel(Request& request) {
    if (!request.cancel()) throw std::runtime_error("a receive that should wait has met a message");
  }
  void send_when_posted(std::span<const std::byte> bytes, int rank, int tag) {
    check(communicator_.send_bytes(bytes, Rank{rank}, Tag{tag}, SendMode::when_posted));
  }
  Request start_send_when_posted(std::span<const std::byte> bytes, int rank, int tag) {
    return communicator_.start_send_bytes(bytes, Rank{rank}, Tag{tag}, SendMode::when_posted);
  }
  void barrier() { check(communicator_.barrier()); }
  void broadcast(std::span<std::byte> bytes, int root) { check(communicator_.broadcast_bytes(bytes, Rank{root})); }
  Request start_broadcast(std::span<std::byte> bytes, int root) {
    return communicator_.start_broadcast_bytes(bytes, Rank{root});
  }
  void all_to_all(std::span<const std::byte> from, std::span<std::byte> to) {
    check(communicator_.all_to_all(from, to));
  }
  void all_reduce(std::span<double> values) { check(communicator_.all_reduce(values)); }

 protected:
  static void check(Status status) {
    if (status != Status::ok) [[unlikely]]
      throw std::runtime_error(std::string(explain(status)));
  }

 private:
  Communicator& communicator_;
};

static_assert(MatchWire<TonariWire> && PostedWire<TonariWire> && CollectiveWire<TonariWire>);

}  // namespace tonari::bench
