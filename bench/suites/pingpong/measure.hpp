#pragma once

// Question: how long does a message of N bytes take from one rank to another?
// Method:   ping-pong between rank 0 and each other rank in turn, half the round trip. Short ones are timed in batches
//           of about 20 us, one sample each; with --exchanges, each of that many round trips is a sample, after 30 that
//           warm up. The first sample of a size is dropped. Before it, one exchange is checked byte by byte. Buffers:
//             warm   the same one each time: data and buffers are in the caches
//             cold   another one each time, on both sides, from pools of four times the last-level cache; caches are
//                    emptied before each size
//           Receivers:
//             blocking    each rank sends, then calls receive, as in most programs; the message may arrive before or
//                         after
//             posted      each rank starts its receive for the next ball before it sends its own, so that every message
//                         finds its receive posted
//             unexpected  after each ball (a nonblocking send) an empty message with another tag is sent, and received
//                         first. Messages between two ranks arrive in order, so the ball, or the announcement of a long
//                         one, has arrived before its receive is called. The time includes the empty message.
// Output:   latency in us against bytes; case "warm", "cold", "warm posted", ...; with more than two ranks followed by
//           the pair and its distance: "warm 0-1 same cache".

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"
#include "kernels/round_trips.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::pingpong {

using round_trips::Blocking;
using round_trips::Posted;
using round_trips::Side;
using round_trips::Unexpected;

inline constexpr int tag_turn = round_trips::tag_end;  // your turn to be measured, or (0) there is nothing left to do

/// The cases to measure, the same on all ranks.
struct Task {
  std::vector<std::size_t> sizes;
  std::vector<std::string> buffers;    // warm, cold
  std::vector<std::string> receivers;  // blocking, posted, unexpected
  std::string note;                    // ends the name of every case
  double budget_us;                    // for each size of each case
  std::uint64_t exchanges;             // samples, each of one round trip; 0: batches, as many as the budget allows

  explicit Task(const Options& options)
      : sizes(options.sizes("sizes", "8,64,4096")),
        buffers(options.list("buffers", "warm,cold")),
        receivers(options.list("receivers", "blocking")),
        note(options.text("note", "")),
        budget_us(options.number("budget-us", 20000)),
        exchanges(static_cast<std::uint64_t>(options.number("exchanges", 0))) {}
};

/// All sizes of one case, between this rank and `peer`, one of which is rank 0.
template <class Exchange, Wire W>
void run_case(W& wire, int peer, const Task& task, const Pools& pools, bool cold, const std::string& label,
              Output& output) {
  for (const auto bytes : task.sizes) {
    Side side{wire.rank() == 0, peer, pools.out(bytes, cold), pools.in(bytes, cold)};
    if (side.first) {
      const auto samples = round_trips::measure<Exchange>(wire, side, pools, cold, task.budget_us, task.exchanges);
      output.samples({label, "latency", "us", "bytes"}, static_cast<double>(bytes), samples);
    } else {
      round_trips::follow<Exchange>(wire, side, pools);
    }
  }
}

template <Wire W>
void run_pair(W& wire, int peer, const Task& task, const std::string& pair, Output& output) {
  const bool any_cold = std::ranges::find(task.buffers, "cold") != task.buffers.end();
  const Pools pools(std::ranges::max(task.sizes), any_cold);
  if (any_cold) output.parameter("cold_pool_bytes", static_cast<double>(pools.bytes()));
  for (const auto& buffers : task.buffers) {
    const bool cold = buffers == "cold";
    for (const auto& receiver : task.receivers) {
      const auto label = buffers + (receiver == "blocking" ? "" : " " + receiver) + pair + task.note;
      if (receiver == "blocking") run_case<Blocking>(wire, peer, task, pools, cold, label, output);
      if constexpr (StartedWire<W>) {
        if (receiver == "posted") run_case<Posted>(wire, peer, task, pools, cold, label, output);
        if (receiver == "unexpected") run_case<Unexpected>(wire, peer, task, pools, cold, label, output);
      }
    }
  }
}

template <StartedWire W>
void wait_for_turn(W& wire) {
  char turn = 0;
  receive_asleep(wire, bytes_of(turn), 0, tag_turn);
}

template <Wire W>
void run(W& wire, const Options& options, Output& output) {
  const Task task(options);
  if (wire.size() < 2) throw std::invalid_argument("pingpong needs two ranks: -n 2");
  const auto places = gather_places(wire);
  output.parameter("processors", processors(places));
  if (task.exchanges != 0) output.parameter("warm_up_exchanges", static_cast<double>(round_trips::warm_up_exchanges));

  if (wire.size() == 2) return run_pair(wire, 1 - wire.rank(), task, "", output);
  if constexpr (StartedWire<W>) {
    if (wire.rank() != 0) {
      wait_for_turn(wire);
      return run_pair(wire, 0, task, "", output);
    }
    for (int peer = 1; peer < wire.size(); ++peer) {
      const auto pair =
          " 0-" + std::to_string(peer) + " " + distance(places[0], places[static_cast<std::size_t>(peer)]);
      wire.send(bytes_of(char{1}), peer, tag_turn);
      run_pair(wire, peer, task, pair, output);
    }
  }
}

}  // namespace tonari::bench::pingpong
