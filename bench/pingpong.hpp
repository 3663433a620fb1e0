#pragma once

// Question: how long does a message of N bytes take from one rank to another?
// Method:   ping-pong between rank 0 and each other rank in turn, half the round trip. Short ones are timed in batches
//           of about 20 us, and a batch is one sample; with --exchanges, each round trip of so many is one. The first
//           sample of a size is dropped. Before it, one exchange is checked byte by byte. Buffers:
//             warm   the same one each time: data and buffers are in the caches
//             cold   another one each time, on both sides, out of pools of four times the last-level cache; caches are
//                    emptied before each size
//           Receivers:
//             blocking    each rank sends, then calls receive, as most programs do; the message may come before or
//                         after
//             posted      each rank starts its receive for the next ball before it sends its own, so that no message
//                         can arrive before its receive is posted
//             unexpected  behind each ball (a started send) comes an empty message with another tag, which is received
//                         first; messages between two ranks arrive in order, so the ball, or the announcement of a long
//                         one, has arrived before its receive is called. The time includes the empty message.
// Output:   latency in us against bytes; case "warm", "cold", "warm posted", ...; with more than two ranks followed by
//           the pair and its distance: "warm 0-1 same cache".

#include "batches.hpp"
#include "buffers.hpp"
#include "placement.hpp"
#include "wire.hpp"
#include "worker.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::pingpong {

inline constexpr int tag_ball = 1;
inline constexpr int tag_behind = 2;   // the message that proves that the ball has arrived
inline constexpr int tag_control = 3;  // plans, and "ready"
inline constexpr int tag_turn = 4;     // your turn to be measured, or (0) there is nothing left to do

inline constexpr double batch_us = 20;

/// What rank 0 tells the other side before each series of exchanges. Sent as it lies here.
struct Plan {
  std::uint64_t batches = 0;  // 0: no more of this size
  std::uint32_t rounds = 0;   // round trips a batch
  std::uint16_t check = 0;    // fill the buffers before, look at them after
  std::uint16_t empty = 0;    // empty the caches before
};

/// One of the two ranks.
struct Side {
  bool first;  // serves the ball
  int peer;
  Buffers out;
  Buffers in;
};

// The three exchanges: batches * rounds round trips, and stamp() after each batch.

struct Blocking {
  template <Wire W, class Stamp>
  static void play(W& wire, Side& side, const Plan& plan, Stamp stamp) {
    for (std::uint64_t batch = 0; batch < plan.batches; ++batch) {
      for (std::uint32_t i = 0; i < plan.rounds; ++i) {
        if (side.first) wire.send(side.out.next(), side.peer, tag_ball);
        wire.receive(side.in.next(), side.peer, tag_ball);
        if (!side.first) wire.send(side.out.next(), side.peer, tag_ball);
      }
      stamp();
    }
  }
};

struct Posted {
  template <StartedWire W, class Stamp>
  static void play(W& wire, Side& side, const Plan& plan, Stamp stamp) {
    auto ball = wire.start_receive(side.in.next(), side.peer, tag_ball);
    for (std::uint64_t batch = 0; batch < plan.batches; ++batch) {
      for (std::uint32_t i = 0; i < plan.rounds; ++i) {
        if (side.first) wire.send(side.out.next(), side.peer, tag_ball);
        wire.wait(ball);
        const bool last = batch + 1 == plan.batches && i + 1 == plan.rounds;
        if (!last) ball = wire.start_receive(side.in.next(), side.peer, tag_ball);
        if (!side.first) wire.send(side.out.next(), side.peer, tag_ball);
      }
      stamp();
    }
  }
};

struct Unexpected {
  template <StartedWire W>
  static void send(W& wire, Side& side) {
    auto ball = wire.start_send(side.out.next(), side.peer, tag_ball);
    wire.send({}, side.peer, tag_behind);
    wire.wait(ball);
  }

  template <StartedWire W, class Stamp>
  static void play(W& wire, Side& side, const Plan& plan, Stamp stamp) {
    for (std::uint64_t batch = 0; batch < plan.batches; ++batch) {
      for (std::uint32_t i = 0; i < plan.rounds; ++i) {
        if (side.first) send(wire, side);
        wire.receive({}, side.peer, tag_behind);
        wire.receive(side.in.next(), side.peer, tag_ball);
        if (!side.first) send(wire, side);
      }
      stamp();
    }
  }
};

/// Both sides: gets ready, plays, and looks at what came if the plan says so. Rank 0 has sent the plan.
template <class Exchange, Wire W, class Stamp>
void carry_out(W& wire, Side& side, const Pools& pools, const Plan& plan, Stamp stamp) {
  const unsigned seed = side.first ? 1 : 2;
  if (plan.check != 0) {
    fill_pattern(side.out.coming(), seed);
    fill_pattern(side.in.coming(), 7);
  }
  if (plan.empty != 0) pools.empty_caches();
  char ready = 1;
  if (side.first) {
    wire.receive(bytes_of(ready), side.peer, tag_control);
  } else {
    wire.send(bytes_of(ready), side.peer, tag_control);
  }

  stamp();
  Exchange::play(wire, side, plan, stamp);

  if (plan.check != 0 && !has_pattern(side.in.last(), 3 - seed)) {
    throw std::runtime_error("pingpong: a message of " + std::to_string(side.in.last().size()) +
                             " bytes arrived with other bytes than were sent");
  }
}

/// Half the round trips between stamps, in us. The first batch is left out: it still fills caches and branch
/// predictors.
inline std::vector<double> latencies_us(const std::vector<std::uint64_t>& stamps, std::uint32_t rounds) {
  std::vector<double> samples;
  for (std::size_t i = 2; i < stamps.size(); ++i) {
    samples.push_back(static_cast<double>(stamps[i] - stamps[i - 1]) / 1000 / rounds / 2);
  }
  return samples;
}

/// Rank 0's side of one size: finds how many round trips make a batch, then measures. Answers a sample a batch, in us:
/// as many as the budget allows, or `exchanges`, each of one round trip.
template <class Exchange, Wire W>
std::vector<double> measure(W& wire, Side& side, const Pools& pools, bool cold, double budget_us,
                            std::uint64_t exchanges = 0) {
  std::vector<std::uint64_t> stamps;
  stamps.reserve(std::max(batches_max, exchanges) + 2);
  const auto play = [&](const Plan& plan) {
    stamps.clear();
    wire.send(bytes_of(plan), side.peer, tag_control);
    carry_out<Exchange>(wire, side, pools, plan, [&] { stamps.push_back(monotonic_ns()); });
    return latencies_us(stamps, plan.rounds);
  };

  play({.batches = 1, .rounds = 1, .check = 1});
  const auto operation_us = [&](std::uint32_t rounds) {
    return 2 * std::ranges::min(play({.batches = 3, .rounds = rounds}));
  };
  const auto fitting = exchanges != 0 ? Batches{1, exchanges} : fit_batches(batch_us, budget_us, operation_us);
  auto samples = play({.batches = fitting.batches + 1, .rounds = fitting.operations, .empty = cold});
  wire.send(bytes_of(Plan{}), side.peer, tag_control);
  return samples;
}

/// The other side of one size.
template <class Exchange, Wire W>
void follow(W& wire, Side& side, const Pools& pools) {
  while (true) {
    Plan plan;
    wire.receive(bytes_of(plan), side.peer, tag_control);
    if (plan.batches == 0) return;
    carry_out<Exchange>(wire, side, pools, plan, [] {});
  }
}

/// What to measure, the same on all ranks.
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
      const auto samples = measure<Exchange>(wire, side, pools, cold, task.budget_us, task.exchanges);
      output.samples({label, "latency", "us", "bytes"}, static_cast<double>(bytes), samples);
    } else {
      follow<Exchange>(wire, side, pools);
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
