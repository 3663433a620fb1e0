#pragma once

// Question: what does a message cost, against the number of messages that are outstanding at once?
// Method:   rank 1 sends rank 0 `outstanding` messages, each with its own tag, in an exchange.
//             sends      rank 1 starts all sends and then waits for all of them. Rank 0 receives the last one first, by
//                        blocking receives into one buffer: so all messages are on their way before one is received.
//             receives   rank 0 starts a receive of each message and tells rank 1, which sends the last one first, by
//                        blocking sends. Rank 0 waits for all receives.
//           An empty message to rank 1 ends an exchange. Exchanges are timed in batches (time_together_us). An exchange
//           that takes too long to be repeated is the only sample.
//           The first and last bytes of messages are checked, in case `sends` also source and tag. Sends share memory:
//           message i begins at number i of one buffer. Each started receive has its own memory.
//           An exchange that would take longer than `limit-s`, as the two before it show, ends the case; so does one
//           whose receives need more than receive_bytes_max.
// Output:   time in us per message, against outstanding; case "sends bytes 4096". Parameter "sends bytes 4096 left
// out":
//           the first number of messages that was left out, and the reason.

#include "harness/batches.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"
#include "kernels/numbered_payloads.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::outstanding {

inline constexpr int tag_ready = 11;
inline constexpr int tag_end = 12;
inline constexpr int tag_message = 1000;  // and above, one per message

inline constexpr double batch_us = 500;
inline constexpr double repeated_budgets_max = 10;  // an exchange that takes longer is not repeated
inline constexpr std::size_t receive_bytes_max = std::size_t{1} << 30;

/// Exchanges of one number of messages. Both ranks make the same calls.
template <MatchWire W>
class Exchange {
 public:
  Exchange(W& wire, const NumberedPayloads& payloads, std::size_t messages, bool receives_are_started)
      : wire_(wire), payloads_(payloads), messages_(messages), receives_are_started_(receives_are_started) {
    const bool starts = (wire.rank() == 0) == receives_are_started;
    if (starts) requests_.reserve(messages);
    if (wire.rank() == 0) memory_.resize(payloads.bytes() * (receives_are_started ? messages : 1));
  }

  void play() {
    if (wire_.rank() == 0) {
      if (receives_are_started_) {
        start_receives();
      } else {
        receive_all();
      }
      wire_.send({}, 1, tag_end);
    } else {
      if (receives_are_started_) {
        send_all();
      } else {
        start_sends();
      }
      wire_.receive({}, 0, tag_end);
    }
    requests_.clear();
  }

  /// Throws if a receive took a wrong message.
  void check() const {
    bool right = right_;
    for (std::size_t i = 0; receives_are_started_ && wire_.rank() == 0 && i < messages_; ++i) {
      right &= payloads_.is_like(std::span(memory_).subspan(i * payloads_.bytes(), payloads_.bytes()), i);
    }
    if (!right) throw std::runtime_error("outstanding: a receive took a wrong message");
  }

 private:
  static int tag_of(std::size_t message) { return tag_message + static_cast<int>(message); }

  void start_sends() {
    for (std::size_t i = 0; i < messages_; ++i) requests_.push_back(wire_.start_send(payloads_.of(i), 0, tag_of(i)));
    wire_.wait_all(requests_);
  }
  void receive_all() {
    for (auto i = messages_; i-- > 0;) {
      const auto arrived = wire_.receive_from(memory_, 1, tag_of(i));
      right_ = right_ && arrived == Arrived{1, tag_of(i)} && payloads_.is_like(memory_, i);
    }
  }

  void start_receives() {
    for (std::size_t i = 0; i < messages_; ++i) {
      const auto buffer = std::span(memory_).subspan(i * payloads_.bytes(), payloads_.bytes());
      requests_.push_back(wire_.start_receive(buffer, 1, tag_of(i)));
    }
    wire_.send({}, 1, tag_ready);
    wire_.wait_all(requests_);
  }
  void send_all() {
    wire_.receive({}, 0, tag_ready);
    for (auto i = messages_; i-- > 0;) wire_.send(payloads_.of(i), 0, tag_of(i));
  }

  W& wire_;
  const NumberedPayloads& payloads_;
  std::size_t messages_;
  bool receives_are_started_;
  std::vector<typename W::Request> requests_;
  std::vector<std::byte> memory_;
  bool right_ = true;
};

/// Expects how long the next exchange takes.
class Forecast {
 public:
  void add(std::size_t messages, double exchange_s) {
    before_ = last_;
    last_ = {messages, exchange_s / static_cast<double>(messages)};
  }
  /// The time per message grows as it did between the two exchanges before; after only one, by as much as their number.
  [[nodiscard]] double expected_s(std::size_t messages) const {
    if (last_.messages == 0) return 0;
    const double growth = static_cast<double>(messages) / static_cast<double>(last_.messages);
    const double factor = before_.messages == 0 ? growth : std::clamp(last_.each_s / before_.each_s, 1.0, growth);
    return last_.each_s * factor * static_cast<double>(messages);
  }

 private:
  struct Point {
    std::size_t messages = 0;
    double each_s = 0;
  };
  Point before_;
  Point last_;
};

/// Returns samples in us per message.
template <MatchWire W>
std::vector<double> measure(W& wire, Exchange<W>& exchange, std::size_t messages, double budget_us) {
  wire.barrier();
  const auto start = monotonic_ns();
  exchange.play();
  const double own_us = static_cast<double>(monotonic_ns() - start) / 1000;
  exchange.check();
  auto samples = largest_of_ranks(wire, {own_us});
  if (samples[0] < repeated_budgets_max * budget_us) {
    samples = time_together_us(wire, batch_us, budget_us, [&](std::uint32_t exchanges) {
      for (std::uint32_t i = 0; i < exchanges; ++i) exchange.play();
    });
    exchange.check();
  }
  for (double& sample : samples) sample /= static_cast<double>(messages);
  return samples;
}

/// Returns why this number of messages is not measured; empty if it is. The same on both ranks.
inline std::string reason_against(const Forecast& forecast, std::size_t messages, std::size_t memory_bytes,
                                  double limit_s) {
  char text[96]{};
  if (memory_bytes > receive_bytes_max) {
    std::snprintf(text, sizeof text, "%zu: the receives would need %.1f GiB", messages,
                  static_cast<double>(memory_bytes) / (1 << 30));
  } else if (const double expected_s = forecast.expected_s(messages); expected_s > limit_s) {
    std::snprintf(text, sizeof text, "%zu: an exchange would take about %.0f s", messages, expected_s);
  }
  return text;
}

template <MatchWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() != 2) throw std::invalid_argument("outstanding needs two ranks: -n 2");
  output.parameter("processors", processors(gather_places(wire)));
  const auto numbers = options.sizes("outstanding", "10,100,1000");  // ascending
  const double budget_us = options.number("budget-us", 20000);
  const double limit_s = options.number("limit-s", 5);
  for (const auto& name : options.list("cases", "sends,receives")) {
    const bool receives_are_started = name == "receives";
    for (const auto bytes : options.sizes("sizes", "8")) {
      const auto label = name + " bytes " + std::to_string(bytes);
      const NumberedPayloads payloads(numbers.back(), bytes);
      Forecast forecast;
      for (const auto messages : numbers) {
        const auto reason =
            reason_against(forecast, messages, receives_are_started ? messages * bytes : bytes, limit_s);
        if (!reason.empty()) {
          output.parameter(label + " left out", reason);
          break;
        }
        Exchange<W> exchange(wire, payloads, messages, receives_are_started);
        const auto samples = measure(wire, exchange, messages, budget_us);
        output.samples({label, "time", "us", "outstanding"}, static_cast<double>(messages), samples);
        forecast.add(messages, std::ranges::min(samples) * static_cast<double>(messages) * 1e-6);
      }
    }
  }
}

}  // namespace tonari::bench::outstanding
