#pragma once

// Question: how long does a short message take behind the traffic of other ranks?
// Method:   ping-pong of 8 bytes between ranks 0 and 1, every round trip timed by itself. In case "alone" ranks 2 and 3
//           sleep. In case "behind" rank 2 streams messages of 16 MiB to rank 0, and rank 3 sends it 8-byte messages,
//           64 at a time. Rank 0 posts the receives of a window (one long message, 64 short ones) before it requests
//           the window, and always has two windows requested from each rank. So no system has to queue unrequested
//           messages. Between two round trips rank 0 waits for a window of short messages, so that there is traffic in
//           every one on any number of cores. It also checks whether a long message has arrived, and requests more.
//           This is not timed; the transfers that continue during a round trip are. Every message carries a number,
//           which is checked.
// Output:   latency in us against bytes, half of each round trip; cases "alone" and "behind". For "behind" also the
//           received traffic: stream in GB/s, flood in M/s.

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include "base/clock.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace tonari::bench::behind {

inline constexpr int tag_ball = 1;
inline constexpr int tag_credit = 2;
inline constexpr int tag_flow = 3;

inline constexpr std::size_t rounds_dropped = 10;
inline constexpr std::size_t rounds_max = 50'000;
inline constexpr std::size_t windows_ahead = 2;

/// The traffic from one rank to rank 0: windows of this many messages, one per credit.
struct Flow {
  int rank;
  std::size_t bytes;
  std::size_t window;
};
inline constexpr Flow stream{2, std::size_t{16} << 20, 1};
inline constexpr Flow flood{3, 8, 64};

using Number = std::uint64_t;

/// A message has its number at its first and last bytes, which may be the same.
inline void put_number(std::span<std::byte> message, Number number) noexcept {
  std::memcpy(message.data(), &number, sizeof number);
  std::memcpy(message.last(sizeof number).data(), &number, sizeof number);
}
inline bool has_number(std::span<const std::byte> message, Number number) noexcept {
  return std::memcmp(message.data(), &number, sizeof number) == 0 &&
         std::memcmp(message.last(sizeof number).data(), &number, sizeof number) == 0;
}

/// Memory and requests of a window's messages.
template <StartedWire W>
struct Window {
  explicit Window(const Flow& from) : flow(from), memory(flow.window * flow.bytes) { requests.reserve(flow.window); }

  [[nodiscard]] std::span<std::byte> message(std::size_t i) const noexcept {
    return memory.bytes().subspan(i * flow.bytes, flow.bytes);
  }

  Flow flow;
  Memory memory;
  std::vector<typename W::Request> requests;
};

/// The sender of a flow: sleeps until the first credit, and ends at a credit that says so.
template <StartedWire W>
void pour(W& wire, const Flow& flow) {
  Window<W> window(flow);
  Number next = 0;
  bool go = false;
  receive_asleep(wire, bytes_of(go), 0, tag_credit);
  while (go) {
    for (std::size_t i = 0; i < flow.window; ++i) {
      put_number(window.message(i), next++);
      window.requests.push_back(wire.start_send(window.message(i), 0, tag_flow));
    }
    wire.wait_all(window.requests);
    window.requests.clear();
    wire.receive(bytes_of(go), 0, tag_credit);
  }
}

/// Rank 0's end of a flow.
template <StartedWire W>
class Sink {
 public:
  Sink(W& wire, const Flow& flow) : wire_(wire), windows_{Window<W>(flow), Window<W>(flow)}, flow_(flow) {}

  void open() {
    for (auto& window : windows_) ask_for(window);
  }
  /// Returns whether the next window has arrived. Messages of a rank arrive in order.
  [[nodiscard]] bool has_arrived() { return wire_.test(next_window().requests.back()); }
  /// Waits for the next window, and requests another.
  void turn() {
    auto& window = next_window();
    take(window);
    ask_for(window);
  }
  void close() {
    for (std::size_t i = 0; i < windows_ahead; ++i) take(next_window());
    wire_.send(bytes_of(false), flow_.rank, tag_credit);
  }

  [[nodiscard]] double messages() const noexcept { return static_cast<double>(taken_); }

 private:
  [[nodiscard]] Window<W>& next_window() noexcept { return windows_[taken_ / flow_.window % windows_ahead]; }

  void ask_for(Window<W>& window) {
    for (std::size_t i = 0; i < flow_.window; ++i) {
      window.requests.push_back(wire_.start_receive(window.message(i), flow_.rank, tag_flow));
    }
    wire_.send(bytes_of(true), flow_.rank, tag_credit);
  }
  void take(Window<W>& window) {
    wire_.wait_all(window.requests);
    window.requests.clear();
    for (std::size_t i = 0; i < flow_.window; ++i) {
      if (!has_number(window.message(i), taken_++)) throw std::runtime_error("behind: a receive took a wrong message");
    }
  }

  W& wire_;
  std::array<Window<W>, windows_ahead> windows_;
  Flow flow_;
  std::size_t taken_ = 0;
};

/// The side of rank 1.
template <StartedWire W>
void return_balls(W& wire) {
  while (true) {
    Number ball = 0;
    wire.receive(bytes_of(ball), 0, tag_ball);
    if (ball == 0) return;
    wire.send(bytes_of(std::as_const(ball)), 0, tag_ball);
  }
}

/// The side of rank 0: returns half of each round trip, in us. Calls `between()` after each.
template <StartedWire W, class Between>
std::vector<double> play(W& wire, double budget_us, Between between) {
  std::vector<double> samples;
  const auto begin = monotonic_ns();
  for (Number round = 1; samples.size() < rounds_max; ++round) {
    Number ball = 0;
    const auto start = monotonic_ns();
    wire.send(bytes_of(std::as_const(round)), 1, tag_ball);
    wire.receive(bytes_of(ball), 1, tag_ball);
    const auto end = monotonic_ns();
    if (ball != round) throw std::runtime_error("behind: a ball came back as another one");
    if (round > rounds_dropped) samples.push_back(static_cast<double>(end - start) / 2000);
    if (!samples.empty() && static_cast<double>(end - begin) / 1000 >= budget_us) break;
    between();
  }
  return samples;
}

template <StartedWire W>
void measure(W& wire, double budget_us, Output& output) {
  constexpr double at = sizeof(Number);
  output.samples({"alone", "latency", "us", "bytes"}, at, play(wire, budget_us, [] {}));

  Sink<W> streamed(wire, stream);
  Sink<W> flooded(wire, flood);
  streamed.open();
  flooded.open();
  const auto start = monotonic_ns();
  const auto samples = play(wire, budget_us, [&] {
    flooded.turn();
    if (streamed.has_arrived()) streamed.turn();
  });
  const auto ns = static_cast<double>(monotonic_ns() - start);
  output.samples({"behind", "latency", "us", "bytes"}, at, samples);
  output.samples({"behind", "stream", "GB/s", "bytes"}, at,
                 {streamed.messages() * static_cast<double>(stream.bytes) / ns});
  output.samples({"behind", "flood", "M/s", "bytes"}, at, {flooded.messages() * 1000 / ns});
  streamed.close();
  flooded.close();
  wire.send(bytes_of(Number{0}), 1, tag_ball);
}

template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() != 4) throw std::invalid_argument("behind needs four ranks: -n 4");
  output.parameter("processors", processors(gather_places(wire)));
  switch (wire.rank()) {
    case 0: return measure(wire, options.number("budget-us", 300'000), output);
    case 1: return return_balls(wire);
    case 2: return pour(wire, stream);
    default: return pour(wire, flood);
  }
}

}  // namespace tonari::bench::behind
