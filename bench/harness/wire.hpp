#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>

namespace tonari::bench {

/// Returns the bytes of a value, for a Wire.
template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// A measuring loop is written once, against a Wire. The same code then measures tonari, each MPI and the bare ring; a
// rival only needs an adapter and a main(). Ranks and tags have the same meaning as in MPI. Failures throw.

/// Blocking messages between ranks.
template <class W>
concept Wire = requires(W& wire, std::span<const std::byte> from, std::span<std::byte> to, int rank, int tag) {
  { wire.rank() } -> std::same_as<int>;
  { wire.size() } -> std::same_as<int>;
  { wire.system() } -> std::same_as<std::string>;  // its name in the results: "tonari", "openmpi-4.1.4"
  wire.send(from, rank, tag);
  wire.receive(to, rank, tag);  // a message of at most to.size() bytes
};

/// Nonblocking messages and collectives. A Request is completed exactly once.
template <class W>
concept StartedWire = Wire<W> &&
    requires(W& wire, std::span<const std::byte> from, std::span<std::byte> to, int rank, int tag,
             typename W::Request& request, std::span<typename W::Request> requests) {
  { wire.start_send(from, rank, tag) } -> std::same_as<typename W::Request>;
  { wire.start_receive(to, rank, tag) } -> std::same_as<typename W::Request>;
  wire.wait(request);
  wire.wait_all(requests);                                   // some may be complete
  { wire.wait_any(requests) } -> std::same_as<std::size_t>;  // index of a request not returned before; one must exist
  { wire.test(request) } -> std::same_as<bool>;              // true: complete, no wait needed
  wire.barrier();
  wire.broadcast(to, rank);
  { wire.start_broadcast(to, rank) } -> std::same_as<typename W::Request>;
};

/// Collectives other than barrier and broadcast.
template <class W>
concept CollectiveWire = StartedWire<W> &&
    requires(W& wire, std::span<const std::byte> from, std::span<std::byte> to, std::span<double> values) {
  wire.all_to_all(from, to);  // part i of `from` goes to rank i; all parts have the same size
  wire.all_reduce(values);    // sums, in place
};

/// The source and tag of a received message.
struct Arrived {
  int rank;
  int tag;

  friend bool operator==(const Arrived&, const Arrived&) = default;
};

/// Receives that report source and tag, accept any source, and can be cancelled.
template <class W>
concept MatchWire = StartedWire<W> &&
    requires(W& wire, std::span<std::byte> to, int rank, int tag, typename W::Request& request) {
  { wire.receive_from(to, rank, tag) } -> std::same_as<Arrived>;
  { W::any_source } -> std::convertible_to<int>;
  wire.cancel(request);  // a receive that has matched no message; no wait needed
};

/// Sends that complete once the receive is posted.
template <class W>
concept PostedWire = StartedWire<W> && requires(W& wire, std::span<const std::byte> from, int rank, int tag) {
  wire.send_when_posted(from, rank, tag);
  { wire.start_send_when_posted(from, rank, tag) } -> std::same_as<typename W::Request>;
};

}  // namespace tonari::bench
