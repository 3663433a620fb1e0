#pragma once

// Question: how long does an atomic operation on a word of another rank take?
// Method:   rank 0 works on one 8-byte word of rank 1, which only waits or computes meanwhile (owner.hpp). Each
//           operation is complete, and its result known, before the next.
//             fetch-add         adds one
//             compare-and-swap  replaces the last number by the next, and always succeeds
//           Batches of about 100 us, some thousand operations. Every result is checked: it is the previous number. At
//           first both ranks add to the word concurrently, and no addition may be lost.
// Output:   latency in us against bytes; case "fetch-add ours waiting", "compare-and-swap own computing", ...

#include "harness/one_sided_wire.hpp"
#include "harness/owner.hpp"
#include "harness/placement.hpp"
#include "harness/worker.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::atomics {

inline constexpr int tag_order = 21;

inline constexpr double batch_us = 100;
inline constexpr std::uint64_t contended = 1000;  // additions of each rank, and of each kind

/// The cases to measure, the same on both ranks.
struct Task {
  std::vector<std::string> operations;  // fetch-add, compare-and-swap
  std::vector<std::string> memories;    // ours, own
  std::vector<std::string> owners;      // waiting, computing
  Effort effort;                        // for each case

  explicit Task(const Options& options)
      : operations(options.list("operations", "fetch-add,compare-and-swap")),
        memories(options.list("memory", "ours,own")),
        owners(options.list("owner", "waiting,computing")),
        effort{batch_us, options.number("budget-us", 10000), options.number("computing-us", 20000),
               static_cast<int>(options.number("computations", 3))} {}
};

/// Checks concurrent additions. Both ranks call it.
template <AtomicWire W>
void check(W& wire, typename W::Window& window) {
  wire.barrier();
  for (std::uint64_t i = 0; i < contended; ++i) window.fetch_add(1, 1, 0);
  for (std::uint64_t i = 0, last = 0; i < contended;) {
    const auto before = window.compare_and_swap(last, last + 1, 1, 0);
    if (before == last) ++i;
    last = before == last ? last + 1 : before;
  }
  wire.barrier();
  const auto sum = window.fetch_add(0, 1, 0);
  if (sum != 2 * 2 * contended) {
    throw std::runtime_error("atomics: of " + std::to_string(4 * contended) + " additions by two ranks, " +
                             std::to_string(sum) + " are there");
  }
  wire.barrier();
}

/// Rank 0's side of one window.
template <AtomicWire W>
class Experiment {
 public:
  Experiment(W& wire, typename W::Window& window, const Task& task, Output& output)
      : window_(window), task_(task), output_(output), owner_(wire, 1, tag_order), next_(window.fetch_add(0, 1, 0)) {}

  void run(const std::string& memory) {
    for (const auto& owner : task_.owners) {
      for (const auto& operation : task_.operations) {
        const auto label = operation + " " + memory + " " + owner;
        const auto samples = time(owner == "computing", operation == "fetch-add");
        if (!right_) throw std::runtime_error("atomics: " + label + ": an operation returned a wrong number");
        output_.samples({label, "latency", "us", "bytes"}, sizeof(std::uint64_t), samples);
      }
    }
    owner_.end();
  }

 private:
  std::vector<double> time(bool computing, bool adds) {
    return adds ? time(computing, [&](std::uint64_t) { return window_.fetch_add(1, 1, 0); })
                : time(computing, [&](std::uint64_t next) { return window_.compare_and_swap(next, next + 1, 1, 0); });
  }

  template <class Step>
  std::vector<double> time(bool computing, Step step) {
    const auto repeat = [&](std::uint32_t operations) {
      for (std::uint32_t i = 0; i < operations; ++i, ++next_) right_ = right_ & (step(next_) == next_);
    };
    return computing ? owner_.time_computing_us(task_.effort, repeat) : owner_.time_waiting_us(task_.effort, repeat);
  }

  typename W::Window& window_;
  const Task& task_;
  Output& output_;
  Owner<W> owner_;
  std::uint64_t next_;  // the value of the word
  bool right_ = true;
};

/// Measures one kind of memory. Both ranks call it.
template <AtomicWire W>
void run_window(W& wire, typename W::Window& window, const Task& task, const std::string& memory, Output& output) {
  std::ranges::fill(window.local(), std::byte{0});
  check(wire, window);
  if (wire.rank() != 0) return serve(wire, window, OtherMemory(false), tag_order);
  Experiment<W>(wire, window, task, output).run(memory);
}

template <AtomicWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() != 2) throw std::invalid_argument("atomics needs two ranks, no more: -n 2");
  const Task task(options);
  output.parameter("processors", processors(gather_places(wire)));
  for (const auto& memory : task.memories) {
    if (memory == "ours") {
      auto window = wire.allocate(line_bytes);
      run_window(wire, window, task, memory, output);
    } else {
      const Memory own(line_bytes);
      auto window = wire.expose(own.bytes());
      run_window(wire, window, task, memory, output);
    }
  }
}

}  // namespace tonari::bench::atomics
