#pragma once

// Question: how fast do ranks send when several of them share a link, or one receiver?
// Method:   in two ways, each with one sender, then two, and so on. "pairs" is figure 5 of the Paragon study: rank i of
//           the first half sends to rank i of the second half. If hosts are filled in rank order, all pairs share one
//           link. In "incast" ranks 1 and up send to rank 0. A sender starts 4 messages, then waits for them and for an
//           empty message back. Batches of about 10 ms (batches.hpp); a sample is the mean time of a batch on its
//           slowest rank; the first is dropped. The first messages are checked byte by byte. Retransmissions are the
//           increase of TcpRetransSegs on the ranks' hosts, other programs included: segments that the network dropped,
//           or delayed beyond TCP's timeout.
// Output:   rate in GB/s of all senders together, and retransmitted in segments per GB sent, against senders; cases
//           "pairs 65536 B", "incast 65536 B".

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/gather.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::contention {

inline constexpr std::size_t window = 4;
inline constexpr double batch_us = 10'000;
inline constexpr int tag_message = 1;
inline constexpr int tag_reply = 2;

/// The retransmissions of a rank's host. Sent in this layout.
struct Retransmitted {
  std::array<char, 44> host{};
  std::uint64_t segments = 0;
};

/// Returns the count since the host was started; 0 if the host does not report it.
inline std::uint64_t retransmitted_here() {
  std::ifstream file("/proc/net/snmp");
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Tcp:")) continue;
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    const auto found = std::ranges::find(names, "RetransSegs");
    if (found != names.end()) return std::stoull(all.at(static_cast<std::size_t>(found - names.begin())));
    names = all;
  }
  return 0;
}

/// The pairs of senders and receivers.
struct Pairs {
  static constexpr const char* name = "pairs";
  static int senders_max(int ranks) { return ranks / 2; }
  /// Returns -1 if the rank does not send.
  static int receiver(int rank, int senders, int ranks) { return rank < senders ? rank + ranks / 2 : -1; }
};
struct Incast {
  static constexpr const char* name = "incast";
  static int senders_max(int ranks) { return ranks - 1; }
  static int receiver(int rank, int senders, int /*ranks*/) { return rank >= 1 && rank <= senders ? 0 : -1; }
};

/// Measures one size, way and number of senders. Every rank calls it.
template <class Way, StartedWire W>
class Experiment {
 public:
  Experiment(W& wire, std::size_t bytes, int senders, double budget_us, Output& output)
      : wire_(wire),
        bytes_(bytes),
        senders_(senders),
        budget_us_(budget_us),
        output_(output),
        to_(Way::receiver(wire.rank(), senders, wire.size())) {
    for (int rank = 0; rank < wire.size(); ++rank) {
      if (Way::receiver(rank, senders, wire.size()) == wire.rank()) from_.push_back(rank);
    }
    memory_.emplace(bytes * window * std::max<std::size_t>(1, from_.size()));
  }

  void run() {
    check();
    const std::uint64_t before = retransmitted_on_all();
    std::uint64_t operations_done = 0;
    auto samples = time_together_us(wire_, batch_us, budget_us_, [&](std::uint32_t operations) {
      for (std::uint32_t i = 0; i < operations; ++i) play();
      operations_done += operations;
    });
    const std::uint64_t again = retransmitted_on_all() - before;
    const double bytes = static_cast<double>(bytes_ * window) * senders_;
    for (double& sample : samples) sample = bytes / sample / 1000;  // GB/s
    const std::string label = std::string(Way::name) + " " + std::to_string(bytes_) + " B";
    output_.samples({label, "rate", "GB/s", "senders"}, senders_, samples);
    const double sent_gb = bytes * static_cast<double>(operations_done) * 1e-9;
    output_.samples({label, "retransmitted", "segments/GB", "senders"}, senders_,
                    {static_cast<double>(again) / sent_gb});
  }

 private:
  std::span<std::byte> buffer(std::size_t index) { return memory_->bytes().subspan(index * bytes_, bytes_); }

  void play() {
    if (to_ >= 0) {
      for (std::size_t i = 0; i < window; ++i) requests_.push_back(wire_.start_send(buffer(i), to_, tag_message));
    }
    for (std::size_t i = 0; i < window * from_.size(); ++i) {
      requests_.push_back(wire_.start_receive(buffer(i), from_[i / window], tag_message));
    }
    wire_.wait_all(requests_);
    requests_.clear();
    for (const int rank : from_) wire_.send({}, rank, tag_reply);
    if (to_ >= 0) wire_.receive({}, to_, tag_reply);
  }

  void check() {
    const auto seed = [](int rank, std::size_t i) {
      return static_cast<unsigned>(rank) * 7 + static_cast<unsigned>(i);
    };
    for (std::size_t i = 0; to_ >= 0 && i < window; ++i) fill_pattern(buffer(i), seed(wire_.rank(), i));
    play();
    for (std::size_t i = 0; i < window * from_.size(); ++i) {
      const int rank = from_[i / window];
      if (!has_pattern(buffer(i), seed(rank, i % window))) {
        throw std::runtime_error(std::string(Way::name) + ": other bytes came than rank " + std::to_string(rank) +
                                 " has sent");
      }
    }
  }

  /// On rank 0, counting each host once.
  std::uint64_t retransmitted_on_all() {
    constexpr int tag_retransmitted = 903;
    const Retransmitted mine{place_of_this_rank().host, retransmitted_here()};
    std::set<std::array<char, 44>> seen;
    std::uint64_t sum = 0;
    for (const auto& each : gather_values(wire_, wire_.size(), mine, tag_retransmitted)) {
      if (seen.insert(each.host).second) sum += each.segments;
    }
    return sum;
  }

  W& wire_;
  std::size_t bytes_;
  int senders_;
  double budget_us_;
  Output& output_;
  int to_;
  std::vector<int> from_;
  std::optional<Memory> memory_;
  std::vector<typename W::Request> requests_;
};

template <class Way, StartedWire W>
void run_way(W& wire, const Options& options, Output& output) {
  const auto budget_us = options.number("budget-us", 100'000);
  for (const auto bytes : options.sizes("sizes", "65536,1048576")) {
    for (int senders = 1; senders <= Way::senders_max(wire.size()); ++senders) {
      Experiment<Way, W>(wire, bytes, senders, budget_us, output).run();
    }
  }
}

template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() < 2) throw std::invalid_argument("contention needs two ranks");
  output.parameter("processors", processors(gather_places(wire)));
  run_way<Pairs>(wire, options, output);
  run_way<Incast>(wire, options, output);
}

}  // namespace tonari::bench::contention
