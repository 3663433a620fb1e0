#pragma once

// A ping-pong between two ranks; rank 0 measures half the round trip. Benchmarks use it with their own sizes and
// conditions.

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/wire.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::round_trips {

inline constexpr int tag_ball = 1;
inline constexpr int tag_behind = 2;   // a message that proves that the ball has arrived
inline constexpr int tag_control = 3;  // plans, and "ready"
inline constexpr int tag_end = 4;      // the caller may use tags from here on

inline constexpr double batch_us = 20;

/// The exchanges before a series of single ones. The first 10 to 16 of a job took up to twice the later ones' time.
inline constexpr std::uint64_t warm_up_exchanges = 30;

/// A series of exchanges; rank 0 sends it to the other side before. Sent in this layout.
struct Plan {
  std::uint64_t batches = 0;  // 0: no more of this size
  std::uint32_t rounds = 0;   // round trips per batch
  std::uint16_t check = 0;    // fill the buffers before, check them after
  std::uint16_t empty = 0;    // empty the caches before
};

/// One of the two ranks.
struct Side {
  bool first;  // serves the ball
  int peer;
  Buffers out;
  Buffers in;
};

// The three ways of an exchange: each plays batches * rounds round trips and calls stamp() after each batch.

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

/// Executes a plan, on both sides: prepares, plays, and checks the received bytes if the plan says so.
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

/// Returns half round trips from the stamps, in us. Drops the first batch, which still fills caches and branch
/// predictors.
inline std::vector<double> latencies_us(const std::vector<std::uint64_t>& stamps, std::uint32_t rounds) {
  std::vector<double> samples;
  for (std::size_t i = 2; i < stamps.size(); ++i) {
    samples.push_back(static_cast<double>(stamps[i] - stamps[i - 1]) / 1000 / rounds / 2);
  }
  return samples;
}

/// Rank 0's side of one size: finds the number of round trips per batch, then measures. Returns one sample per batch,
/// in us: as many as the budget allows; or `exchanges` samples, each of one round trip, if that is not 0.
template <class Exchange, Wire W>
std::vector<double> measure(W& wire, Side& side, const Pools& pools, bool cold, double budget_us,
                            std::uint64_t exchanges = 0) {
  std::vector<std::uint64_t> stamps;
  stamps.reserve(std::max({batches_max, exchanges, warm_up_exchanges}) + 2);
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
  if (exchanges != 0) play({.batches = warm_up_exchanges, .rounds = 1});
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

}  // namespace tonari::bench::round_trips
