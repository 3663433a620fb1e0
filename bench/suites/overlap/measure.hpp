#pragma once

// Question: does a transfer go on while the ranks compute, and what does that cost them?
// Method:   the matrix product of the Paragon study, C = A B. Each rank has rows of A and C and `blocks` blocks of
//           columns of B, which travel round a ring of the ranks. Before a rank computes with a block, it sends it on
//           and starts the receive of the next. Afterwards it calls blocking receives and completes everything started.
//           Six modes, SEND/RECEIVE:
//             buffered/blocking       the block is copied, and a send of the copy started, as a buffered send does.
//                                     (This is the study's synchronous send into the system buffer. Today a blocking
//                                     send of a long message waits for a receive, which here comes only later.)
//             blocking/started        the receive is started first, then a blocking send
//             posted/started          the same with a send that waits until the receive is posted
//             started/blocking        a nonblocking send, completed after the computation
//             started/started         the same with a nonblocking receive
//             started-posted/started  the same with a nonblocking send that completes when the receive is posted
//           A block is computed by BLAS, in the caches, or (plain) by the study's inner product for each element.
//           Computation: each block once, ten times, or not at all, to show how much time it hides. One rank can be
//           slowed: it computes each block `slowed` times. Two more ranks can stream messages to each other. For each
//           point and mode one untimed product is checked; it is then repeated for some time.
// Output:   rate in GFLOP/s (2 n^3 operations per computation, by the time of the slowest rank), one sample per
//           product. send, compute and wait in s, one sample per rank and product: time in sends, computing, and in
//           receives and completions. Check: every element of C.

#include "harness/phases.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"
#include "product.hpp"
#include "traffic.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::overlap {

inline constexpr double residual_bound = 30;

/// The cases to measure, the same on all ranks.
struct Task {
  std::vector<std::size_t> orders;
  std::vector<std::size_t> blocks;
  std::vector<std::string> modes;
  std::vector<std::string> computations;  // once, none, tenfold
  int slowed;                             // the last rank computes this many times as much
  bool traffic;                           // the last two ranks of the job stream messages
  Kernel kernel;
  std::string x;     // n, blocks, ranks
  std::string note;  // ends the name of every case
  double budget_s;   // per point and case

  explicit Task(const Options& options)
      : orders(options.sizes("sizes", "300")),
        blocks(options.sizes("blocks", "1")),
        modes(options.list("modes", "blocking/started")),
        computations(options.list("computation", "once")),
        slowed(static_cast<int>(options.number("slowed", 1))),
        traffic(options.text("traffic", "no") == "yes"),
        kernel(options.text("kernel", "blas") == "plain" ? Kernel::plain : Kernel::blas),
        x(options.text("x", "n")),
        note(options.text("note", "")),
        budget_s(options.number("budget-s", 0.1)) {}
};

/// Measures all modes and computations of one layout.
template <PostedWire W>
class Experiment {
 public:
  Experiment(W& wire, Team<W>& team, const Task& task, const Layout& layout, Output& output)
      : wire_(wire),
        team_(team),
        task_(task),
        layout_(layout),
        output_(output),
        product_(wire, layout, task.kernel),
        at_(task.x == "ranks"    ? layout.ranks
            : task.x == "blocks" ? layout.blocks
                                 : layout.n) {}

  void run() {
    for (const auto& name : task_.modes) {
      const auto mode = std::ranges::find(modes, name, &Mode::name);
      if (mode == modes.end()) throw std::invalid_argument("overlap: there is no mode " + name);
      check(*mode);
      for (const auto& computation : task_.computations) measure(*mode, computation);
    }
  }

 private:
  void check(const Mode& mode) {
    product_.clear();
    product_.run(mode, 1);
    double largest = 0;
    for (const double residual : team_.gather(product_.residual())) {
      if (!(residual <= largest)) largest = residual;  // keeps a NaN
    }
    output_.check({std::string(mode.name) + task_.note, "residual", "", task_.x}, at_, largest, residual_bound);
  }

  void measure(const Mode& mode, const std::string& computation) {
    const int times = computation == "none" ? 0 : computation == "tenfold" ? 10 : 1;
    const bool is_slow = wire_.rank() == layout_.ranks - 1;
    PhaseSamples samples;
    double seconds = 0;
    do {
      team_.barrier();
      const Times mine = product_.run(mode, is_slow ? times * task_.slowed : times);
      seconds += samples.add(team_.gather(mine), 2.0 * times * std::pow(layout_.n, 3));
    } while (team_.tell(seconds < task_.budget_s));
    const auto label = std::string(mode.name) + (computation == "once" ? "" : " " + computation) + task_.note;
    samples.report(output_, label, task_.x, at_);
  }

  W& wire_;
  Team<W>& team_;
  const Task& task_;
  Layout layout_;
  Output& output_;
  Product<W> product_;
  double at_;
};

template <PostedWire W>
void run(W& wire, const Options& options, Output& output) {
  openblas_set_num_threads(1);  // ranks run in parallel, BLAS does not
  output.parameter("processors", processors(gather_places(wire)));
  const Task task(options);
  Team<W> team(wire, wire.size() - (task.traffic ? traffic_ranks : 0));
  if (team.size() < 1) throw std::invalid_argument("overlap: traffic needs two ranks more than the computing ranks");
  Traffic<W> traffic(wire, team.size());
  if (!team.has_this_rank()) return traffic.run();
  for (const auto n : task.orders) {
    for (const auto blocks : task.blocks) {
      const Layout layout{static_cast<int>(n), static_cast<int>(blocks), team.size()};
      Experiment<W>(wire, team, task, layout, output).run();
    }
  }
  if (task.traffic && wire.rank() == 0) output.parameter("traffic, GB/s", traffic.stop());
}

}  // namespace tonari::bench::overlap
