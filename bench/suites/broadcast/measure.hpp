#pragma once

// Question: how long does a broadcast of N bytes take, until each rank has it and until all have?
// Method:   from rank 0, in two ways. "library" is the system's own broadcast. "tree" is that of the Paragon study,
//           made of blocking sends and receives: in step k the ranks below 2^k, which have the data, send to the next
//           2^k.
//             reply    the quantity of the study: from the call on rank 0 until an empty message is back, which a rank
//                      sends when its call returns. Rank 0 has started the receives of all replies before, and tests
//                      them after its own call. An untimed barrier precedes each broadcast, which is one sample; the
//                      first is dropped.
//             latency  many broadcasts in a row, in batches of about half a millisecond (batches.hpp), until the last
//                      rank has the data. A sample is the mean time of a batch on its slowest rank. The root may run
//                      ahead within a batch.
//           The first broadcast of each size and way is checked byte by byte.
// Output:   latency in us against bytes, case "library ranks 4"; reply in us against bytes, case "library ranks 4 from
//           3".

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::broadcast {

inline constexpr int tag_tree = 1;
inline constexpr int tag_reply = 2;

inline constexpr double batch_us = 500;
inline constexpr double replies_max = 1000;

struct Library {
  static constexpr const char* name = "library";

  template <StartedWire W>
  static void call(W& wire, std::span<std::byte> bytes) {
    wire.broadcast(bytes, 0);
  }
};

struct Tree {
  static constexpr const char* name = "tree";

  template <StartedWire W>
  static void call(W& wire, std::span<std::byte> bytes) {
    for (int have = 1; have < wire.size(); have *= 2) {
      if (wire.rank() < have) {
        if (wire.rank() + have < wire.size()) wire.send(bytes, wire.rank() + have, tag_tree);
      } else if (wire.rank() < 2 * have) {
        wire.receive(bytes, wire.rank() - have, tag_tree);
      }
    }
  }
};

/// Measures one size and way. Every rank calls it.
template <class Way, StartedWire W>
class Experiment {
 public:
  Experiment(W& wire, std::span<std::byte> bytes, double budget_us, Output& output)
      : wire_(wire), bytes_(bytes), budget_us_(budget_us), output_(output) {}

  void run() {
    check();
    report_replies();
    const auto samples = time_together_us(wire_, batch_us, budget_us_, [&](auto operations) {
      for (std::uint32_t i = 0; i < operations; ++i) Way::call(wire_, bytes_);
    });
    output_.samples({label(), "latency", "us", "bytes"}, static_cast<double>(bytes_.size()), samples);
  }

 private:
  [[nodiscard]] std::string label() const { return std::string(Way::name) + " ranks " + std::to_string(wire_.size()); }

  void check() {
    fill_pattern(bytes_, wire_.rank() == 0 ? 1 : 2);
    Way::call(wire_, bytes_);
    if (!has_pattern(bytes_, 1)) {
      throw std::runtime_error("broadcast: " + label() + ": rank " + std::to_string(wire_.rank()) +
                               " got other bytes than were sent");
    }
  }

  /// Returns the us until each rank's reply, rank 1 first; on other ranks the time of their own part.
  std::vector<double> replies_us() {
    const auto others = static_cast<std::size_t>(wire_.size()) - 1;
    std::vector<double> times(others);
    std::vector<typename W::Request> replies;
    if (wire_.rank() == 0) {
      for (int rank = 1; rank < wire_.size(); ++rank) replies.push_back(wire_.start_receive({}, rank, tag_reply));
    }
    wire_.barrier();
    const auto start = monotonic_ns();
    Way::call(wire_, bytes_);
    if (wire_.rank() != 0) wire_.send({}, 0, tag_reply);
    for (std::size_t seen = 0; seen < replies.size(); ++seen) {
      const auto other = wire_.wait_any(replies);
      times[other] = static_cast<double>(monotonic_ns() - start) / 1000;
    }
    return times;
  }

  void report_replies() {
    replies_us();
    const auto all_us = largest_of_ranks(wire_, {std::ranges::max(replies_us())})[0];
    const auto count = static_cast<std::size_t>(std::clamp(budget_us_ / all_us, 1.0, replies_max));
    std::vector<std::vector<double>> samples(static_cast<std::size_t>(wire_.size()) - 1);
    for (std::size_t i = 0; i < count; ++i) {
      const auto times = replies_us();
      for (std::size_t other = 0; other < times.size(); ++other) samples[other].push_back(times[other]);
    }
    for (std::size_t other = 0; other < samples.size(); ++other) {
      output_.samples({label() + " from " + std::to_string(other + 1), "reply", "us", "bytes"},
                      static_cast<double>(bytes_.size()), samples[other]);
    }
  }

  W& wire_;
  std::span<std::byte> bytes_;
  double budget_us_;
  Output& output_;
};

template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() < 2) throw std::invalid_argument("broadcast needs two ranks");
  output.parameter("processors", processors(gather_places(wire)));
  const auto sizes = options.sizes("sizes", "8,1024");
  const auto budget_us = options.number("budget-us", 20000);
  const Memory memory(std::ranges::max(sizes));
  for (const auto bytes : sizes) {
    Experiment<Library, W>(wire, memory.bytes().first(bytes), budget_us, output).run();
    Experiment<Tree, W>(wire, memory.bytes().first(bytes), budget_us, output).run();
  }
}

}  // namespace tonari::bench::broadcast
