#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>

namespace tonari::bench {

/// One value as what a Wire takes.
template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// A measuring loop is written once, over a Wire: tonari, each MPI and the bare ring are measured by the same code, and
// a rival's source is its adapter and a main(). Ranks and tags mean what they mean in MPI. What fails throws.

/// Blocking messages between ranks.
template <class W>
concept Wire = requires(W& wire, std::span<const std::byte> from, std::span<std::byte> to, int rank, int tag) {
  { wire.rank() } -> std::same_as<int>;
  { wire.size() } -> std::same_as<int>;
  { wire.system() } -> std::same_as<std::string>;  // as the results call it: "tonari", "openmpi-4.1.4"
  wire.send(from, rank, tag);
  wire.receive(to, rank, tag);  // a message of at most to.size() bytes
};

/// Messages and collectives that go on while the program computes. A Request is waited for exactly once.
template <class W>
concept StartedWire = Wire<W> &&
    requires(W& wire, std::span<const std::byte> from, std::span<std::byte> to, int rank, int tag,
             typename W::Request& request, std::span<typename W::Request> requests) {
  { wire.start_send(from, rank, tag) } -> std::same_as<typename W::Request>;
  { wire.start_receive(to, rank, tag) } -> std::same_as<typename W::Request>;
  wire.wait(request);
  wire.wait_all(requests);                                   // some may be complete
  { wire.wait_any(requests) } -> std::same_as<std::size_t>;  // the index of one not answered before; one there must be
  { wire.test(request) } -> std::same_as<bool>;              // true: complete, and need not be waited for
  wire.barrier();
  wire.broadcast(to, rank);
  { wire.start_broadcast(to, rank) } -> std::same_as<typename W::Request>;
};

/// Collectives beside barrier and broadcast.
template <class W>
concept CollectiveWire = StartedWire<W> &&
    requires(W& wire, std::span<const std::byte> from, std::span<std::byte> to, std::span<double> values) {
  wire.all_to_all(from, to);  // part i of `from` goes to rank i; all parts are of one size
  wire.all_reduce(values);    // sums, in place
};

/// Whose message a receive took, and with which tag.
struct Arrived {
  int rank;
  int tag;

  friend bool operator==(const Arrived&, const Arrived&) = default;
};

/// Receives that tell what they took, may take it from anybody, and can be taken back.
template <class W>
concept MatchWire = StartedWire<W> &&
    requires(W& wire, std::span<std::byte> to, int rank, int tag, typename W::Request& request) {
  { wire.receive_from(to, rank, tag) } -> std::same_as<Arrived>;
  { W::any_source } -> std::convertible_to<int>;
  wire.cancel(request);  // of a receive that has met no message; it need not be waited for
};

/// Sends that are done when the receive was found posted.
template <class W>
concept PostedWire = StartedWire<W> && requires(W& wire, std::span<const std::byte> from, int rank, int tag) {
  wire.send_when_posted(from, rank, tag);
  { wire.start_send_when_posted(from, rank, tag) } -> std::same_as<typename W::Request>;
};

}  // namespace tonari::bench
