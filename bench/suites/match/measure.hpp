#pragma once

// Question: what does a match cost, against the number of messages or receives in its way?
// Method:   rank 0 measures, rank 1 executes its orders. Queued messages have distinct tags and `payload` bytes.
//             unexpected       rank 0's unexpected queue has `depth` of them. 64 messages of 8 bytes with another tag
//                              follow, then one that reports their arrival: messages between two ranks arrive in order.
//                              The 64 blocking receives (fewer if they are slow) are timed as one batch.
//             any-source       the same, with receives from any source
//             unexpected-cold  the same with one message; the caches are emptied between its arrival and its receive.
//                              The time includes reading the clock once.
//             posted           `depth` receives are posted on both ranks; then the exchange "posted" of round_trips.hpp
//                              with 8 bytes: half a round trip contains one search. Afterwards they are cancelled.
//             drain-reverse    `depth` messages are received, last first; total time divided by their number
//             drain-random     the same, shuffled
//           The first batch or drain is dropped: it warms up, and may build an index. A drain that takes too long to be
//           repeated is kept, as the only sample. Every receive is checked: source, tag, and bytes that distinguish all
//           messages. A drain that would take longer than drain_s_max, extrapolated from the previous depth, is left
//           out.
// Output:   latency in ns against depth; case "unexpected", "posted payload 40", ...

#include "harness/buffers.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"
#include "kernels/numbered_payloads.hpp"
#include "kernels/round_trips.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tonari::bench::match {

inline constexpr int tag_order = 11;
inline constexpr int tag_ready = 12;
inline constexpr int tag_probe = 13;
inline constexpr int tag_queued = 1000;  // and above, one per message

inline constexpr std::size_t probes_batch = 64;
inline constexpr double drain_s_max = 3;

// Queued messages longer than the eager limit of every system are sent in portions. Each is received before the next is
// started, so that no system runs out of buffers.
inline constexpr std::size_t surely_eager_bytes = 48;
inline constexpr std::size_t portion = 64;

/// An order from rank 0 to rank 1. Sent in this layout.
struct Order {
  enum class What : std::uint64_t { end, queue, settle, probe, posted };
  What what;
  std::uint64_t first;  // queue: the number of the first message
  std::uint64_t count;
};

/// The cases to measure, the same on both ranks.
struct Task {
  std::vector<std::size_t> depths;  // ascending
  std::vector<std::size_t> payloads;
  std::vector<std::string> cases;
  double budget_us;  // per depth and case, without the preparation
  int colds;         // samples of unexpected-cold

  explicit Task(const Options& options)
      : depths(options.sizes("depths", "0,10,100")),
        payloads(options.sizes("payloads", "0")),
        cases(options.list("cases", "unexpected,posted")),
        budget_us(options.number("budget-us", 2000)),
        colds(static_cast<int>(options.number("colds", 4))) {}

  [[nodiscard]] bool asks(std::string_view name) const { return std::ranges::find(cases, name) != cases.end(); }
};

inline std::string label_of(const std::string& name, std::size_t payload) {
  return payload == 0 ? name : name + " payload " + std::to_string(payload);
}

inline void require(bool right, const char* what) {
  if (!right) throw std::runtime_error(std::string("match: ") + what);
}

/// Posted receives that precede the measured one, each with its own memory.
template <MatchWire W>
class PostedReceives {
 public:
  PostedReceives(W& wire, std::size_t payload_bytes, std::size_t count) : wire_(wire), memory_(count * payload_bytes) {
    requests_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto buffer = memory_.bytes().subspan(i * payload_bytes, payload_bytes);
      requests_.push_back(wire_.start_receive(buffer, 1 - wire_.rank(), tag_queued + static_cast<int>(i)));
    }
  }

  /// Cancels them; no receive has matched a message. The oldest first, which is fast in every system.
  void take_back() {
    for (auto& request : requests_) wire_.cancel(request);
  }

 private:
  W& wire_;
  Memory memory_;
  std::vector<typename W::Request> requests_;
};

/// The side of rank 1: executes orders until the end.
template <MatchWire W>
class Helper {
 public:
  Helper(W& wire, const NumberedPayloads& payloads, const Pools& pools)
      : wire_(wire), payloads_(payloads), pools_(pools) {}

  void run() {
    while (true) {
      Order order{};
      wire_.receive(bytes_of(order), 0, tag_order);
      switch (order.what) {
        case Order::What::end: return;
        case Order::What::queue: queue(order); break;
        case Order::What::settle: settle(); break;
        case Order::What::probe: probe(order.count); break;
        case Order::What::posted: play(order.count); break;
      }
    }
  }

 private:
  void queue(const Order& order) {
    for (auto i = order.first; i < order.first + order.count; ++i) {
      const int tag = tag_queued + static_cast<int>(i);
      if (payloads_.bytes() <= surely_eager_bytes) {
        wire_.send(payloads_.of(i), 0, tag);
      } else {
        queued_.push_back(wire_.start_send(payloads_.of(i), 0, tag));
      }
    }
    wire_.send({}, 0, tag_ready);
  }
  void settle() {
    for (auto& request : queued_) wire_.wait(request);
    queued_.clear();
    probes_ = 0;
  }
  void probe(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i, ++probes_) {
      wire_.send(bytes_of(std::as_const(probes_)), 0, tag_probe);
    }
    wire_.send({}, 0, tag_ready);
  }
  void play(std::size_t depth) {
    PostedReceives<W> receives(wire_, payloads_.bytes(), depth);
    round_trips::Side side{false, 0, pools_.out(sizeof(std::uint64_t), false), pools_.in(sizeof(std::uint64_t), false)};
    round_trips::follow<round_trips::Posted>(wire_, side, pools_);
    receives.take_back();
  }

  W& wire_;
  const NumberedPayloads& payloads_;
  const Pools& pools_;
  std::vector<typename W::Request> queued_;
  std::uint64_t probes_ = 0;
};

/// The side of rank 0: measures every case with one payload length.
template <MatchWire W>
class Experiment {
 public:
  Experiment(W& wire, const Task& task, const NumberedPayloads& payloads, const Pools& pools, Output& output)
      : wire_(wire), task_(task), payloads_(payloads), pools_(pools), output_(output), buffer_(payloads.bytes()) {}

  void run() {
    for (const auto& name : task_.cases) {
      before_ = {};
      for (const auto depth : task_.depths) {
        if (name == "unexpected") report(name, depth, unexpected(depth, 1));
        if (name == "any-source") report(name, depth, unexpected(depth, W::any_source));
        if (name == "unexpected-cold") report(name, depth, unexpected_cold(depth));
        if (name == "posted") report(name, depth, posted(depth));
        if (name.starts_with("drain") && may_drain(name, depth)) report(name, depth, drains(name, depth));
      }
    }
    order({Order::What::end, 0, 0});
  }

 private:
  using Samples = std::vector<double>;

  void report(const std::string& name, std::size_t depth, const Samples& samples_ns) {
    output_.samples({label_of(name, payloads_.bytes()), "latency", "ns", "depth"}, static_cast<double>(depth),
                    samples_ns);
  }

  void order(const Order& order) { wire_.send(bytes_of(order), 1, tag_order); }
  void await_ready() { wire_.receive({}, 1, tag_ready); }

  /// Waits until messages 0 to depth - 1 are in the unexpected queue. Receives the notice of each portion while there
  /// is no queue to search yet.
  void queue(std::size_t depth) {
    const std::size_t each = payloads_.bytes() <= surely_eager_bytes ? std::max<std::size_t>(depth, 1) : portion;
    std::vector<typename W::Request> ready;
    for (std::size_t first = 0; first < depth; first += each) ready.push_back(wire_.start_receive({}, 1, tag_ready));
    std::size_t first = 0;
    for (auto& request : ready) {
      order({Order::What::queue, first, std::min(each, depth - first)});
      wire_.wait(request);
      first += each;
    }
    probes_ = 0;
  }
  void receive_queued(std::size_t message) {
    const int tag = tag_queued + static_cast<int>(message);
    const Arrived arrived = wire_.receive_from(buffer_, 1, tag);
    right_ = right_ && arrived == Arrived{1, tag} && payloads_.is_like(buffer_, message);
  }
  /// Called after all queued messages are received.
  void settle() {
    order({Order::What::settle, 0, 0});
    require(std::exchange(right_, true), "a receive took a wrong message");
  }
  /// The oldest first, which is fast in every system.
  void empty_queue(std::size_t depth) {
    for (std::size_t i = 0; i < depth; ++i) receive_queued(i);
    settle();
  }

  /// Returns the ns per receive of `count` messages behind the queue.
  double probe_ns(std::size_t count, int source, bool cold) {
    order({Order::What::probe, 0, count});
    await_ready();
    if (cold) pools_.empty_caches();
    std::array<std::uint64_t, probes_batch> numbers{};
    std::array<Arrived, probes_batch> arrived{};

    const auto start = monotonic_ns();
    for (std::size_t i = 0; i < count; ++i) {
      arrived[i] = wire_.receive_from(bytes_of(numbers[i]), source, tag_probe);
    }
    const auto end = monotonic_ns();

    for (std::size_t i = 0; i < count; ++i, ++probes_) {
      require(arrived[i] == Arrived{1, tag_probe} && numbers[i] == probes_, "a receive took a wrong message");
    }
    return static_cast<double>(end - start) / static_cast<double>(count);
  }

  Samples unexpected(std::size_t depth, int source) {
    queue(depth);
    const double slow_us = probe_ns(1, source, false) / 1000;
    const auto batch = static_cast<std::size_t>(std::clamp(10 * task_.budget_us / slow_us, 8.0, 1.0 * probes_batch));
    const double batch_us = probe_ns(batch, source, false) * static_cast<double>(batch) / 1000;
    const double wanted = std::clamp(task_.budget_us / batch_us, 3.0, 300.0);
    Samples samples;
    while (static_cast<double>(samples.size()) < wanted) samples.push_back(probe_ns(batch, source, false));
    empty_queue(depth);
    return samples;
  }

  Samples unexpected_cold(std::size_t depth) {
    queue(depth);
    probe_ns(1, 1, true);
    Samples samples;
    for (int i = 0; i < task_.colds; ++i) samples.push_back(probe_ns(1, 1, true));
    empty_queue(depth);
    return samples;
  }

  Samples posted(std::size_t depth) {
    order({Order::What::posted, 0, depth});
    PostedReceives<W> receives(wire_, payloads_.bytes(), depth);
    round_trips::Side side{true, 1, pools_.out(sizeof(std::uint64_t), false), pools_.in(sizeof(std::uint64_t), false)};
    auto samples = round_trips::measure<round_trips::Posted>(wire_, side, pools_, false, task_.budget_us);
    receives.take_back();
    for (double& sample : samples) sample *= 1000;
    return samples;
  }

  double drain_ns(const std::vector<std::size_t>& messages) {
    queue(messages.size());
    const auto start = monotonic_ns();
    for (const auto message : messages) receive_queued(message);
    const auto end = monotonic_ns();
    settle();
    return static_cast<double>(end - start) / static_cast<double>(messages.size());
  }

  Samples drains(const std::string& name, std::size_t depth) {
    std::vector<std::size_t> messages(depth);
    std::iota(messages.begin(), messages.end(), std::size_t{0});
    if (name == "drain-reverse") {
      std::ranges::reverse(messages);
    } else {
      std::ranges::shuffle(messages, std::mt19937_64(depth));
    }
    const double first = drain_ns(messages);
    const double drain_us = first * static_cast<double>(depth) / 1000;
    const bool once = drain_us > 10 * task_.budget_us;  // too long to repeat
    Samples samples;
    if (once) samples.push_back(first);
    const double wanted = once ? 1 : std::clamp(task_.budget_us / drain_us, 2.0, 50.0);
    while (static_cast<double>(samples.size()) < wanted) samples.push_back(drain_ns(messages));
    before_ = {depth, std::ranges::min(samples)};
    return samples;
  }

  /// Returns false if there is nothing to drain, or if it would take too long, with times that grow with the depth.
  bool may_drain(const std::string& name, std::size_t depth) {
    if (depth == 0) return false;
    if (before_.depth == 0) return true;
    const double growth = static_cast<double>(depth) / static_cast<double>(before_.depth);
    const double expected_s = before_.receive_ns * growth * static_cast<double>(depth) * 1e-9;
    if (expected_s < drain_s_max) return true;
    output_.parameter(label_of(name, payloads_.bytes()) + " of " + std::to_string(depth) + " left out, s", expected_s);
    return false;
  }

  struct Before {
    std::size_t depth = 0;
    double receive_ns = 0;
  };

  W& wire_;
  const Task& task_;
  const NumberedPayloads& payloads_;
  const Pools& pools_;
  Output& output_;
  std::vector<std::byte> buffer_;
  std::uint64_t probes_ = 0;  // received since the queue was filled
  bool right_ = true;
  Before before_;  // the previous drain of this kind
};

template <MatchWire W>
void run(W& wire, const Options& options, Output& output) {
  const Task task(options);
  if (wire.size() != 2) throw std::invalid_argument("match needs two ranks: -n 2");
  output.parameter("processors", processors(gather_places(wire)));
  const Pools pools(sizeof(std::uint64_t), task.asks("unexpected-cold"));
  for (const auto bytes : task.payloads) {
    const NumberedPayloads payloads(std::ranges::max(task.depths), bytes);
    if (wire.rank() == 0) {
      Experiment<W>(wire, task, payloads, pools, output).run();
    } else {
      Helper<W>(wire, payloads, pools).run();
    }
  }
}

}  // namespace tonari::bench::match
