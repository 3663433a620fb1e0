#pragma once

// Question: how many short messages per second does one rank send another, with one thread and with several?
// Method:   thread i of rank 0 sends to thread i of rank 1, with its own tag, in one communicator: 64 nonblocking sends
//           of 8 bytes for 64 nonblocking receives, posted before or after the messages arrive. Then an empty message
//           returns. All threads begin a batch together, and it ends with the last of them. Batches of about 2 ms,
//           measured on the slower rank, the first dropped. Every message carries its number, which is checked.
// Output:   rate in millions of messages per second, of all threads together, against threads per rank; case "one
//           communicator".

#include "harness/batches.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include <array>
#include <barrier>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace tonari::bench::rate {

inline constexpr std::size_t window = 64;
inline constexpr double batch_us = 2000;

/// One thread's side of its exchange with the thread of the same number on the other rank.
template <StartedWire W>
class Lane {
 public:
  Lane(W& wire, int number) : wire_(wire), tag_message_(2 * number), tag_behind_(2 * number + 1) {
    requests_.reserve(window);
  }

  /// A failure ends the program, since the other threads cannot be stopped.
  void play(std::uint32_t windows) noexcept {
    for (std::uint32_t i = 0; i < windows; ++i) {
      if (wire_.rank() == 0) {
        send_window();
      } else {
        receive_window();
      }
    }
  }

  /// Whether all messages so far were the right ones.
  [[nodiscard]] bool right() const noexcept { return right_; }

 private:
  void send_window() {
    for (auto& number : numbers_) {
      number = next_++;
      requests_.push_back(wire_.start_send(bytes_of(std::as_const(number)), 1, tag_message_));
    }
    wire_.wait_all(requests_);
    requests_.clear();
    wire_.receive({}, 1, tag_behind_);
  }

  void receive_window() {
    for (auto& number : numbers_) requests_.push_back(wire_.start_receive(bytes_of(number), 0, tag_message_));
    wire_.wait_all(requests_);
    requests_.clear();
    for (const auto number : numbers_) right_ = right_ && number == next_++;
    wire_.send({}, 0, tag_behind_);
  }

  W& wire_;
  int tag_message_;
  int tag_behind_;
  std::array<std::uint64_t, window> numbers_{};
  std::vector<typename W::Request> requests_;
  std::uint64_t next_ = 0;
  bool right_ = true;
};

/// The threads of this rank, the calling one among them. Between batches they sleep.
template <StartedWire W>
class Team {
 public:
  Team(W& wire, int threads) : meeting_(threads) {
    for (int i = 0; i < threads; ++i) lanes_.push_back(std::make_unique<Lane<W>>(wire, i));
    for (int i = 1; i < threads; ++i) helpers_.emplace_back([this, i] { help(*lanes_[static_cast<std::size_t>(i)]); });
  }
  Team(Team&&) = delete;
  ~Team() {
    windows_ = 0;
    meeting_.arrive_and_wait();
  }

  void play(std::uint32_t windows) {
    windows_ = windows;
    meeting_.arrive_and_wait();
    lanes_[0]->play(windows);
    meeting_.arrive_and_wait();
    for (const auto& lane : lanes_) {
      if (!lane->right()) throw std::runtime_error("rate: a receive took a wrong message");
    }
  }

 private:
  void help(Lane<W>& lane) {
    while (true) {
      meeting_.arrive_and_wait();
      if (windows_ == 0) return;
      lane.play(windows_);
      meeting_.arrive_and_wait();
    }
  }

  std::vector<std::unique_ptr<Lane<W>>> lanes_;
  std::barrier<> meeting_;
  std::uint32_t windows_ = 0;  // of the batch; 0: the end
  std::vector<std::jthread> helpers_;
};

template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() != 2) throw std::invalid_argument("rate needs two ranks: -n 2");
  output.parameter("processors", processors(gather_places(wire)));
  const int threads = static_cast<int>(options.number("threads-a-rank", 1));
  Team<W> team(wire, threads);
  auto samples = time_together_us(wire, batch_us, options.number("budget-us", 20000),
                                  [&](std::uint32_t windows) { team.play(windows); });
  for (double& sample : samples) sample = static_cast<double>(window) * threads / sample;  // messages a us
  output.samples({"one communicator", "rate", "M/s", "threads"}, threads, samples);
}

}  // namespace tonari::bench::rate
