#pragma once

// Question: how long does it take to write N bytes of another rank's memory, or to read them?
// Method:   rank 0 pushes into rank 1's memory, or pulls from it. Rank 1 takes no part. Meanwhile:
//             waiting    it waits in the library, in a receive
//             computing  it computes for a fixed time without calling the library (owner.hpp). If a system needs rank
//                        1's help, an operation takes until the computation ends.
//           The memory:
//             ours  allocated by the system
//             own   memory of the program, made accessible
//           Operations are timed in batches of about 20 us, one sample each (batches.hpp).
//             latency  one operation and its completion: a push is flushed
//             rate     16 operations, each on its own memory, completed together
//             hidden   of systems with descriptors: 16 are posted, rank 0 computes about twice their time, and then
//                      waits for them. The share of their time, in per cent, by which this is shorter than both in turn
//           Warm, they use the same memory each time, on both sides. Cold, they use other memory each time, from pools
//           of four times the last-level cache. The pools were accessed once before, and caches are emptied before each
//           size. Before a size is measured, bytes at the first and last position of the window are checked.
// Output:   latency in us, rate in GB/s, hidden in % against bytes; case "push ours waiting", "pull own computing
// cold", ...

#include "harness/buffers.hpp"
#include "harness/one_sided_wire.hpp"
#include "harness/owner.hpp"
#include "harness/placement.hpp"
#include "harness/worker.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tonari::bench::window {

inline constexpr int tag_order = 21;

inline constexpr double batch_us = 20;
inline constexpr std::size_t together = 16;

/// The cases to measure, the same on both ranks.
struct Task {
  std::vector<std::size_t> sizes;
  std::vector<std::string> operations;  // push, pull
  std::vector<std::string> memories;    // ours, own
  std::vector<std::string> owners;      // waiting, computing
  std::vector<std::string> buffers;     // warm, cold
  Effort effort;                        // per metric, size and case

  explicit Task(const Options& options)
      : sizes(options.sizes("sizes", "8,64,4096")),
        operations(options.list("operations", "push,pull")),
        memories(options.list("memory", "ours,own")),
        owners(options.list("owner", "waiting,computing")),
        buffers(options.list("buffers", "warm,cold")),
        effort{batch_us, options.number("budget-us", 10000), options.number("computing-us", 20000),
               static_cast<int>(options.number("computations", 3))} {}

  [[nodiscard]] bool cold() const { return std::ranges::find(buffers, "cold") != buffers.end(); }
  /// The size of each rank's part, and of rank 0's memory for the copies.
  [[nodiscard]] std::size_t window_bytes() const {
    const auto warm = together * (std::ranges::max(sizes) + line_bytes);
    return cold() ? std::max(cold_pool_bytes(), warm) : warm;
  }
};

// A window may have its own functions to start several operations: start_push(), start_pull() and finish_started().
template <class Window>
concept StartsSeveral = requires(Window& window) {
  window.finish_started();
};

// A window may have descriptors, which are posted together and run while rank 0 computes.
template <class Window>
concept PostsDescriptors = requires(Window& window, std::span<std::byte> memory) {
  window.post(std::array{window.pushing(memory, 1, 0)});
  window.post(std::array{window.pulling(memory, 1, 0)});
  window.finish_posted();
};

struct Push {
  template <PostsDescriptors Window>
  static auto descriptor(Window& window, std::span<std::byte> here, std::size_t there) {
    return window.pushing(here, 1, there);
  }
  template <class Window>
  static void start(Window& window, std::span<std::byte> here, std::size_t there) {
    window.push(here, 1, there);
  }
  template <class Window>
  static void complete(Window& window) {
    window.flush(1);
  }
  template <StartsSeveral Window>
  static void start_one_of_several(Window& window, std::span<std::byte> here, std::size_t there) {
    window.start_push(here, 1, there);
  }
};

struct Pull {
  template <PostsDescriptors Window>
  static auto descriptor(Window& window, std::span<std::byte> here, std::size_t there) {
    return window.pulling(here, 1, there);
  }
  template <class Window>
  static void start(Window& window, std::span<std::byte> here, std::size_t there) {
    window.pull(here, 1, there);
  }
  template <class Window>
  static void complete(Window& window) {
    window.finish_pulls(1);
  }
  template <StartsSeveral Window>
  static void start_one_of_several(Window& window, std::span<std::byte> here, std::size_t there) {
    window.start_pull(here, 1, there);
  }
};

/// Rank 0's side of one window.
template <OneSidedWire W>
class Experiment {
 public:
  Experiment(W& wire, typename W::Window& window, const Task& task, std::span<std::byte> pool, const OtherMemory& other,
             Output& output)
      : window_(window), task_(task), pool_(pool), other_(other), output_(output), owner_(wire, 1, tag_order) {}

  void run(const std::string& memory) {
    reach_all();
    for (const auto& buffers : task_.buffers) {
      for (const auto& owner : task_.owners) {
        for (const auto& operation : task_.operations) {
          const auto label = operation + " " + memory + " " + owner + (buffers == "cold" ? " cold" : "");
          for (const auto bytes : task_.sizes) {
            const Point point{label, bytes, buffers == "cold", owner == "computing"};
            operation == "push" ? measure<Push>(point) : measure<Pull>(point);
          }
        }
      }
    }
    owner_.end();
  }

 private:
  struct Point {
    std::string label;
    std::size_t bytes;
    bool cold;
    bool computing;
  };

  /// The position of the next copy, on both sides.
  struct Places {
    Places(std::span<std::byte> pool, std::size_t bytes, bool changing)
        : here(pool, bytes, changing), there(pool, bytes, changing) {}

    Buffers here;
    Buffers there;
  };

  /// Reads all of the memory once, so that all pages are present, and mapped if the system maps them at first use.
  void reach_all() {
    constexpr std::size_t step = std::size_t{1} << 20;
    for (std::size_t at = 0; at < pool_.size(); at += step) {
      window_.pull(pool_.subspan(at, std::min(step, pool_.size() - at)), 1, at);
      window_.finish_pulls(1);
    }
  }

  template <class Operation>
  void measure(const Point& point) {
    check<Operation>(point, 0);
    check<Operation>(point, pool_.size() - point.bytes);

    if (point.cold) {
      owner_.order({.what = Order::What::empty_caches});
      other_.read();
    }
    Places places(pool_, point.bytes, point.cold);
    const auto alone = [&] {
      start<Operation>(places);
      Operation::complete(window_);
    };
    const auto samples = time(point, alone);
    output_.samples({point.label, "latency", "us", "bytes"}, static_cast<double>(point.bytes), samples);

    // Cold operations continue where the previous ones ended. Warm ones use pools of 16 buffers.
    const auto few = together * ((point.bytes + line_bytes - 1) / line_bytes * line_bytes);
    if (!point.cold) places = Places(pool_.first(few), point.bytes, true);
    const auto many = [&] {
      for (std::size_t i = 0; i < together; ++i) start_one_of_several<Operation>(places);
      if constexpr (StartsSeveral<typename W::Window>) window_.finish_started();
      Operation::complete(window_);
    };
    auto rates = time(point, many);
    for (double& rate : rates) rate = static_cast<double>(together * point.bytes) / rate / 1000;
    output_.samples({point.label, "rate", "GB/s", "bytes"}, static_cast<double>(point.bytes), rates);
    if constexpr (PostsDescriptors<typename W::Window>) {
      if (!point.cold && !point.computing) measure_hidden<Operation>(point, places);
    }
  }

  /// Measures which share of the time of posted descriptors a computation of rank 0 hides.
  template <class Operation>
  void measure_hidden(const Point& point, Places& places) {
    using Descriptor = decltype(Operation::descriptor(window_, std::span<std::byte>(), 0));
    std::array<Descriptor, together> descriptors;
    for (auto& one : descriptors) one = Operation::descriptor(window_, places.here.next(), offset(places.there.next()));
    const auto both_us = [&](bool posts, std::uint64_t steps) {
      const auto start = monotonic_ns();
      if (posts) window_.post(descriptors);
      compute_steps(steps);
      if (posts) {
        window_.finish_posted();
        Operation::complete(window_);
      }
      return static_cast<double>(monotonic_ns() - start) / 1000;
    };
    both_us(true, 0);  // the first one may start the thread
    double alone_us = both_us(true, 0);
    for (int i = 0; i < 4; ++i) alone_us = std::min(alone_us, both_us(true, 0));
    const auto steps = static_cast<std::uint64_t>(2 * alone_us * 1000);
    const double wanted = std::clamp(task_.effort.budget_us / (6 * alone_us), 5.0, 200.0);
    std::vector<double> hidden;
    while (static_cast<double>(hidden.size()) < wanted) {
      const double copies = both_us(true, 0);
      const double computation = both_us(false, steps);
      hidden.push_back(100 * (copies + computation - both_us(true, steps)) / copies);
    }
    output_.samples({point.label, "hidden", "%", "bytes"}, static_cast<double>(point.bytes), hidden);
  }

  template <class Operation>
  void start(Places& places) {
    Operation::start(window_, places.here.next(), offset(places.there.next()));
  }

  template <class Operation>
  void start_one_of_several(Places& places) {
    if constexpr (StartsSeveral<typename W::Window>) {
      Operation::start_one_of_several(window_, places.here.next(), offset(places.there.next()));
    } else {
      start<Operation>(places);
    }
  }

  template <class Perform>
  std::vector<double> time(const Point& point, Perform perform) {
    const auto repeat = [&](std::uint32_t operations) {
      for (std::uint32_t i = 0; i < operations; ++i) perform();
    };
    return point.computing ? owner_.time_computing_us(task_.effort, repeat)
                           : owner_.time_waiting_us(task_.effort, repeat);
  }

  /// Returns the offset on the other side, which equals the offset in the local pool of the same size.
  [[nodiscard]] std::size_t offset(std::span<const std::byte> place) const noexcept {
    return static_cast<std::size_t>(place.data() - pool_.data());
  }

  template <class Operation>
  void check(const Point& point, std::size_t there) {
    const auto here = pool_.first(point.bytes);
    const auto order = [&](Order::What what) {
      return owner_.order({.what = what, .first = there, .bytes = point.bytes, .seed = seed_});
    };
    ++seed_;  // bytes that differ from all previous ones
    const bool pushes = std::is_same_v<Operation, Push>;
    fill_pattern(here, pushes ? seed_ : seed_ + 1);
    if (!pushes) order(Order::What::fill);
    Operation::start(window_, here, there);
    Operation::complete(window_);
    if (!(pushes ? order(Order::What::look) : has_pattern(here, seed_))) {
      throw std::runtime_error("window: " + point.label + ": " + std::to_string(point.bytes) + " bytes at offset " +
                               std::to_string(there) + " are others than they should be");
    }
  }

  typename W::Window& window_;
  const Task& task_;
  std::span<std::byte> pool_;  // rank 0's memory for the copies
  const OtherMemory& other_;
  Output& output_;
  Owner<W> owner_;
  unsigned seed_ = 0;
};

/// Measures one kind of memory. Both ranks call it.
template <OneSidedWire W>
void run_window(W& wire, typename W::Window& window, const Task& task, const std::string& memory, Output& output) {
  const OtherMemory other(task.cold());
  bool touched = true;
  if (wire.rank() != 0) {
    std::ranges::fill(window.local(), std::byte{7});
    wire.send(bytes_of(std::as_const(touched)), 0, tag_order);
    return serve(wire, window, other, tag_order);
  }
  const Memory pool(task.window_bytes());
  wire.receive(bytes_of(touched), 1, tag_order);
  Experiment<W>(wire, window, task, pool.bytes(), other, output).run(memory);
}

template <OneSidedWire W>
void run(W& wire, const Options& options, Output& output) {
  if (wire.size() != 2) throw std::invalid_argument("window needs two ranks, no more: -n 2");
  const Task task(options);
  output.parameter("processors", processors(gather_places(wire)));
  if (task.cold()) output.parameter("cold_pool_bytes", static_cast<double>(task.window_bytes()));
  for (const auto& memory : task.memories) {
    if (memory == "ours") {
      auto window = wire.allocate(task.window_bytes());
      run_window(wire, window, task, memory, output);
    } else {
      const Memory own(task.window_bytes());
      auto window = wire.expose(own.bytes());
      run_window(wire, window, task, memory, output);
    }
  }
}

}  // namespace tonari::bench::window
