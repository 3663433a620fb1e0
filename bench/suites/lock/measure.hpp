#pragma once

// Question: how long does it take to get the lock of another rank, alone and in turn with others?
// Method:   exclusive locks.
//             uncontended  rank 0 acquires and releases the lock of rank 1, in batches of about 100 us. Rank 1 waits in
//                          the library, or ("computing home") computes for a fixed time without calling it (owner.hpp).
//                          All others sleep.
//             handover     all ranks acquire the lock of rank 0 as often as they can, for a fixed time that begins when
//                          each has had it once. The holder adds one to a counter, and stores its rank as the last
//                          holder. At the end the counter must be the sum of all acquisitions.
// Output:   against ranks: latency in us to acquire and release the lock, for "handover" per acquisition by any rank.
//           For "handover" also change in us, the time between two changes of the holder; and fairness, the
//           acquisitions of the rank with the fewest, divided by the mean.

#include "harness/one_sided_wire.hpp"
#include "harness/owner.hpp"
#include "harness/placement.hpp"
#include "harness/worker.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tonari::bench::lock {

inline constexpr int tag_order = 21;
inline constexpr int tag_turns = 22;

inline constexpr double batch_us = 100;
inline constexpr std::uint64_t begin_ns_max = 5'000'000'000;

/// The data that the lock of a handover protects, in the layout of the window.
struct Turns {
  std::uint64_t count;   // acquisitions since the window was made
  std::uint64_t last;    // the rank that had the lock last
  std::uint64_t begun;   // ranks that had it in this stretch of time
  std::uint64_t end_ns;  // of the stretch; 0: not all have begun
};

/// One rank's part in a stretch. Sent in this layout.
struct Share {
  std::uint64_t all = 0;      // turns
  std::uint64_t turns = 0;    // the turns that count: after all ranks have begun, and before the end
  std::uint64_t changes = 0;  // counted turns after a turn of another rank
};

/// Takes turns until the stretch ends. It begins when all ranks have had the lock once: before, some may still be
/// asleep and not compete.
template <LockWire W>
Share take_turns(W& wire, typename W::Window& window, std::uint64_t stretch_ns) {
  const auto me = static_cast<std::uint64_t>(wire.rank());
  const auto give_up_ns = monotonic_ns() + begin_ns_max;
  Share share;
  for (std::uint64_t now = 0, end = 0; end == 0 || now < end; ++share.all) {
    Turns turns{};
    window.lock(0);
    window.pull(bytes_of(turns), 0, 0);
    window.finish_pulls(0);
    now = monotonic_ns();
    end = turns.end_ns;
    if (end != 0 && now < end) {
      ++share.turns;
      share.changes += turns.last != me ? 1U : 0U;
    }
    ++turns.count;
    turns.last = me;
    turns.begun += share.all == 0 ? 1U : 0U;
    const bool begins = turns.begun == static_cast<std::uint64_t>(wire.size()) || now > give_up_ns;
    if (end == 0 && begins) turns.end_ns = now + stretch_ns;
    window.push(bytes_of(std::as_const(turns)), 0, 0);
    window.unlock(0);
  }
  return share;
}

/// Every rank calls it; rank 0 writes one sample of each metric per stretch.
template <LockWire W>
void measure_handover(W& wire, const Options& options, Output& output) {
  auto window = wire.allocate_with_locks(sizeof(Turns));
  const auto stretches = static_cast<int>(options.number("stretches", 3));
  const auto stretch_us = options.number("stretch-us", 50000);
  std::vector<double> latencies;
  std::vector<double> changes;
  std::vector<double> fairness;
  std::uint64_t all_turns = 0;
  for (int i = 0; i < stretches; ++i) {
    if (wire.rank() == 0) {
      const Turns begin{.count = all_turns, .last = 0, .begun = 0, .end_ns = 0};
      window.lock(0);
      window.push(bytes_of(begin), 0, 0);
      window.unlock(0);
    }
    wire.barrier();
    const auto mine = take_turns(wire, window, static_cast<std::uint64_t>(stretch_us * 1000));
    const auto shares = gather_values(wire, wire.size(), mine, tag_turns);
    if (wire.rank() != 0) continue;
    Share sum;
    std::uint64_t least = shares[0].turns;
    for (const auto& share : shares) {
      sum.all += share.all;
      sum.turns += share.turns;
      sum.changes += share.changes;
      least = std::min(least, share.turns);
    }
    all_turns += sum.all;
    Turns turns{};
    window.lock(0);
    window.pull(bytes_of(turns), 0, 0);
    window.unlock(0);
    if (turns.count != all_turns) {
      throw std::runtime_error("lock: " + std::to_string(all_turns) + " turns were taken, and " +
                               std::to_string(turns.count) + " were counted under the lock");
    }
    const auto us_each = [&](std::uint64_t times) {
      return stretch_us / static_cast<double>(std::max<std::uint64_t>(times, 1));
    };
    latencies.push_back(us_each(sum.turns));
    changes.push_back(us_each(sum.changes));
    fairness.push_back(static_cast<double>(least) * wire.size() /
                       static_cast<double>(std::max<std::uint64_t>(sum.turns, 1)));
  }
  wire.barrier();
  output.samples({"handover", "latency", "us", "ranks"}, wire.size(), latencies);
  output.samples({"handover", "change", "us", "ranks"}, wire.size(), changes);
  output.samples({"handover", "fairness", "", "ranks"}, wire.size(), fairness);
}

/// Every rank calls it; rank 0 measures.
template <LockWire W>
void measure_uncontended(W& wire, const Options& options, Output& output) {
  auto window = wire.allocate_with_locks(sizeof(Turns));
  if (wire.rank() == 1) return serve(wire, window, OtherMemory(false), tag_order);
  if (wire.rank() > 1) {
    bool over = false;
    return receive_asleep(wire, bytes_of(over), 0, tag_order);
  }
  const Effort effort{batch_us, options.number("budget-us", 10000), options.number("computing-us", 20000),
                      static_cast<int>(options.number("computations", 3))};
  const auto repeat = [&](std::uint32_t operations) {
    for (std::uint32_t i = 0; i < operations; ++i) {
      window.lock(1);
      window.unlock(1);
    }
  };
  Owner<W> home(wire, 1, tag_order);
  output.samples({"uncontended", "latency", "us", "ranks"}, wire.size(), home.time_waiting_us(effort, repeat));
  output.samples({"uncontended computing home", "latency", "us", "ranks"}, wire.size(),
                 home.time_computing_us(effort, repeat));
  home.end();
  for (int rank = 2; rank < wire.size(); ++rank) wire.send(bytes_of(true), rank, tag_order);
}

template <LockWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() < 2) throw std::invalid_argument("lock needs two ranks");
  output.parameter("processors", processors(gather_places(wire)));
  for (const auto& name : options.list("cases", "uncontended,handover")) {
    name == "uncontended" ? measure_uncontended(wire, options, output) : measure_handover(wire, options, output);
  }
}

}  // namespace tonari::bench::lock
