#pragma once

// Question: how long does a message of N bytes occupy its sender, and how soon can the next one follow? For `tonari
// bench fit`, which needs it for the parameters of LogGP.
// Method:   rank 1 starts receives and tells rank 0, which starts as many sends, waits for them, and for an empty
//           message that rank 1 sends back. That is a burst. Bursts of one, of `burst` and of `window` messages
//           alternate. Each rank has one buffer to send and one for each message to receive. `send` is the time of rank
//           0 per start of a send in a burst. `gap` is the difference of the times of two bursts, divided by the
//           difference of their messages: few messages (1 and `burst`) or many (`burst` and `window`). After these,
//           both ranks send to each other at the same time, several times in a row: `exchange` is the time per message
//           of one rank. It is longer than half a round trip if the cores are busy all the time.
// Output:   send, few, many and exchange in us against bytes, one sample per round; case "occupancy".

#include "harness/buffers.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace tonari::bench::occupancy {

inline constexpr std::size_t burst = 4;
inline constexpr std::size_t window_max = 64;
inline constexpr std::size_t window_bytes_max = std::size_t{4} << 20;
inline constexpr int tag_message = 1;
inline constexpr int tag_ready = 2;
inline constexpr int tag_end = 3;
inline constexpr int exchanges = 10;
inline constexpr std::size_t warm_up_rounds = 5;
inline constexpr std::size_t rounds_min = 5;
inline constexpr std::size_t rounds_max = 200;

/// The times of a burst on rank 0, in us.
struct BurstTimes {
  double starts_us = 0;
  double all_us = 0;
};

template <StartedWire W>
class Occupancy {
 public:
  Occupancy(W& wire, std::size_t bytes)
      : wire_(wire),
        bytes_(bytes),
        window_(std::clamp(window_bytes_max / bytes, 2 * burst, window_max)),
        memory_(bytes * (wire.rank() == 0 ? 2 : window_)) {
    requests_.reserve(window_);
  }

  void run(double budget_us, Output& output) {
    std::vector<double> send, few, many, exchange;
    const auto start = monotonic_ns();
    for (std::size_t round = 0; go_on(round, start, budget_us); ++round) {
      const auto one = play(1);
      const auto some = play(burst);
      const auto all = play(window_);
      const double exchange_us = play_exchanges();
      if (round < warm_up_rounds) continue;
      send.push_back(some.starts_us / burst);
      few.push_back((some.all_us - one.all_us) / (burst - 1));
      many.push_back((all.all_us - some.all_us) / static_cast<double>(window_ - burst));
      exchange.push_back(exchange_us);
    }
    const auto at = static_cast<double>(bytes_);
    output.samples({"occupancy", "send", "us", "bytes"}, at, send);
    output.samples({"occupancy", "few", "us", "bytes"}, at, few);
    output.samples({"occupancy", "many", "us", "bytes"}, at, many);
    output.samples({"occupancy", "exchange", "us", "bytes"}, at, exchange);
  }

 private:
  // Rank 0 decides.
  bool go_on(std::size_t round, std::uint64_t start, double budget_us) {
    const double spent_us = static_cast<double>(monotonic_ns() - start) / 1000;
    const std::size_t kept = round < warm_up_rounds ? 0 : round - warm_up_rounds;
    char more = kept < rounds_min || (kept < rounds_max && spent_us < budget_us) ? 1 : 0;
    wire_.broadcast(bytes_of(more), 0);
    return more != 0;
  }

  BurstTimes play(std::size_t messages) {
    requests_.clear();
    if (wire_.rank() != 0) {
      for (std::size_t i = 0; i < messages; ++i) {
        requests_.push_back(wire_.start_receive(memory_.bytes().subspan(i * bytes_, bytes_), 0, tag_message));
      }
      wire_.send({}, 0, tag_ready);
      wire_.wait_all(requests_);
      wire_.send({}, 0, tag_end);
      return {};
    }
    wire_.receive({}, 1, tag_ready);
    const auto start = monotonic_ns();
    for (std::size_t i = 0; i < messages; ++i) {
      requests_.push_back(wire_.start_send(memory_.bytes().first(bytes_), 1, tag_message));
    }
    const auto started = monotonic_ns();
    wire_.wait_all(requests_);
    wire_.receive({}, 1, tag_end);
    return {static_cast<double>(started - start) / 1000, static_cast<double>(monotonic_ns() - start) / 1000};
  }

  double play_exchanges() {
    const int peer = 1 - wire_.rank();
    const auto out = memory_.bytes().first(bytes_);
    const auto in = memory_.bytes().subspan(bytes_, bytes_);
    const auto start = monotonic_ns();
    for (int i = 0; i < exchanges; ++i) {
      requests_.clear();
      requests_.push_back(wire_.start_receive(in, peer, tag_message));
      requests_.push_back(wire_.start_send(out, peer, tag_message));
      wire_.wait_all(requests_);
    }
    return static_cast<double>(monotonic_ns() - start) / 1000 / exchanges;
  }

  W& wire_;
  std::size_t bytes_;
  std::size_t window_;
  Memory memory_;
  std::vector<typename W::Request> requests_;
};

template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() != 2) throw std::invalid_argument("occupancy needs two ranks: -n 2");
  output.parameter("processors", processors(gather_places(wire)));
  for (const auto bytes : options.sizes("sizes", "8,4096")) {
    Occupancy<W>(wire, bytes).run(options.number("budget-us", 20000), output);
  }
}

}  // namespace tonari::bench::occupancy
