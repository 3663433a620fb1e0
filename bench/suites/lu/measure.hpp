#pragma once

// Question: how fast is a parallel LU factorisation, and where does its time go?
// Method:   outer-product Gaussian elimination with partial pivoting of the Paragon study's matrix. Columns are dealt
//           cyclically to the ranks, `block` at a time (1 is the program of the study: a rank-1 update, dger; wider
//           panels use dtrsm and dgemm). The owner of a panel factors it and sends it to all others. Rows are exchanged
//           at once. No rank searches along a row. Three modes:
//             blocking         the owner sends to each rank in turn; they receive; all update. Nothing overlaps.
//             started-receive  each rank starts the receive of the next panel before it updates. The owner of the next
//                              panel updates that panel first, factors it, sends it (blocking), and updates the rest.
//             started          the same with nonblocking broadcasts on both ends, which continue during the update.
//           For each order and mode one untimed factorisation is checked; it is then repeated for some time, at least
//           twice.
// Output:   rate in GFLOP/s (2/3 n^3 operations by the time of the slowest rank), one sample per factorisation. send,
//           compute and wait in s, one sample per rank and factorisation: time in sends (and completing broadcasts at
//           the root), computing, and in receives. Check: the residual against LAPACK's bound.

#include "distributed_matrix.hpp"
#include "harness/phases.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include <array>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tonari::bench::lu {

inline constexpr double residual_bound = 30;
inline constexpr int tag_panel = 1;
inline constexpr int tag_times = 2;
inline constexpr int tag_columns = 3;

enum class Mode : std::uint8_t { blocking, started_receive, started };

/// One factorisation of this rank's columns.
template <StartedWire W>
class Factorisation {
 public:
  Factorisation(W& wire, const Layout& layout, Columns& mine, Mode mode)
      : wire_(wire), layout_(layout), mine_(mine), mode_(mode), pivots_(static_cast<std::size_t>(layout.n)) {}

  Times run() {
    wire_.barrier();
    Watch all;
    watch_ = Watch();
    obtain(0);
    for (int panel = 0; panel < layout_.panels(); ++panel) {
      finish(panel);
      const bool ahead = mode_ != Mode::blocking && panel + 1 < layout_.panels();
      if (ahead) look_ahead(panel);
      update_rest(panel, ahead);
      if (!ahead && panel + 1 < layout_.panels()) obtain(panel + 1);
    }
    all.lap(times_.all);
    return times_;
  }

  /// The row exchanged with each row.
  [[nodiscard]] const std::vector<int>& pivots() const noexcept { return pivots_; }

 private:
  [[nodiscard]] bool owns(int panel) const noexcept { return layout_.owner(panel) == wire_.rank(); }
  [[nodiscard]] Panel& buffer(int panel) noexcept { return buffers_[static_cast<std::size_t>(panel % 2)]; }
  [[nodiscard]] std::span<std::byte> message(int panel) noexcept {
    return std::as_writable_bytes(std::span(buffer(panel).values));
  }
  /// Index of this rank's first column in `panel` or a later one.
  [[nodiscard]] int column(int panel) const noexcept { return layout_.columns_before(panel, wire_.rank()); }

  /// Factors and sends `panel` if it is this rank's; otherwise starts its receive, if the mode starts receives.
  void obtain(int panel) {
    buffer(panel).shape(layout_.n, layout_.start(panel), layout_.width(panel));
    if (owns(panel)) {
      factor(mine_, column(panel), buffer(panel));
      watch_.lap(times_.compute);
      hand_out(panel);
      watch_.lap(times_.send);
    } else if (mode_ != Mode::blocking) {
      request_ = mode_ == Mode::started ? wire_.start_broadcast(message(panel), layout_.owner(panel))
                                        : wire_.start_receive(message(panel), layout_.owner(panel), tag_panel);
      watch_.lap(times_.wait);
    }
  }

  void hand_out(int panel) {
    if (layout_.ranks == 1) return;
    if (mode_ == Mode::started) {
      request_ = wire_.start_broadcast(message(panel), wire_.rank());
      return;
    }
    for (int rank = 0; rank < layout_.ranks; ++rank) {
      if (rank != wire_.rank()) wire_.send(message(panel), rank, tag_panel);
    }
  }

  /// Waits until `panel` is here, and being sent to all ranks.
  void finish(int panel) {
    if (request_) {
      wire_.wait(*request_);
      request_.reset();
    } else if (!owns(panel)) {
      wire_.receive(message(panel), layout_.owner(panel), tag_panel);
    }
    watch_.lap(owns(panel) ? times_.send : times_.wait);
    for (int i = 0; i < layout_.width(panel); ++i) {
      pivots_[static_cast<std::size_t>(layout_.start(panel) + i)] = buffer(panel).pivot(i);
    }
  }

  /// Updates the next panel if it is this rank's, and obtains it.
  void look_ahead(int panel) {
    if (owns(panel + 1)) update(mine_, buffer(panel), column(panel + 1), column(panel + 2));
    obtain(panel + 1);
  }

  void update_rest(int panel, bool ahead) {
    exchange_rows(mine_, buffer(panel), 0, column(panel));
    update(mine_, buffer(panel), column(panel + (ahead ? 2 : 1)), mine_.count());
    watch_.lap(times_.compute);
  }

  W& wire_;
  Layout layout_;
  Columns& mine_;
  Mode mode_;
  std::vector<int> pivots_;
  std::array<Panel, 2> buffers_;  // the panel being applied, and the panel being transferred
  std::optional<typename W::Request> request_;
  Watch watch_;
  Times times_;
};

inline void fill(Columns& mine, const Layout& layout, int rank, const PaperMatrix& paper) {
  for (int panel = rank; panel < layout.panels(); panel += layout.ranks) {
    for (int i = 0; i < layout.width(panel); ++i) {
      paper.fill(mine, layout.columns_before(panel, rank) + i, layout.start(panel) + i);
    }
  }
}

/// The columns of all ranks, on rank 0.
template <StartedWire W>
void gather_columns(W& wire, const Layout& layout, Columns& mine, Columns& whole) {
  for (int panel = 0; panel < layout.panels(); ++panel) {
    const int owner = layout.owner(panel);
    for (int i = 0; i < layout.width(panel); ++i) {
      double* const to = wire.rank() == 0 ? whole.at(0, layout.start(panel) + i) : nullptr;
      if (owner == wire.rank()) {
        double* const from = mine.at(0, layout.columns_before(panel, owner) + i);
        if (wire.rank() == 0) {
          std::copy_n(from, layout.n, to);
        } else {
          wire.send(std::as_bytes(std::span(from, static_cast<std::size_t>(layout.n))), 0, tag_columns);
        }
      } else if (wire.rank() == 0) {
        wire.receive(std::as_writable_bytes(std::span(to, static_cast<std::size_t>(layout.n))), owner, tag_columns);
      }
    }
  }
}

struct Case {
  std::string label;
  Mode mode;
};

inline std::vector<Case> cases_of(const Options& options) {
  std::vector<Case> cases;
  for (const auto& name : options.list("modes", "blocking,started-receive,started")) {
    cases.push_back({name, name == "blocking"  ? Mode::blocking
                           : name == "started" ? Mode::started
                                               : Mode::started_receive});
  }
  return cases;
}

/// Measures one order and mode.
template <StartedWire W>
class Experiment {
 public:
  Experiment(W& wire, const Layout& layout, Case which, const Options& options, Output& output)
      : wire_(wire),
        layout_(layout),
        case_(std::move(which)),
        output_(output),
        paper_(layout.n),
        mine_(layout.n, layout.columns(wire.rank())),
        budget_s_(options.number("budget-s", 1)),
        x_(options.text("x", "n")),
        at_(x_ == "ranks" ? wire.size() : layout.n) {}

  void run() {
    check();
    PhaseSamples samples;
    const double n = layout_.n;
    int repeats = 0;
    for (double seconds = 0; go_on(repeats == 0 || seconds < budget_s_); ++repeats) {
      fill(mine_, layout_, wire_.rank(), paper_);
      const Times mine = Factorisation<W>(wire_, layout_, mine_, case_.mode).run();
      seconds += samples.add(gather_values(wire_, wire_.size(), mine, tag_times), 2.0 / 3.0 * n * n * n);
    }
    samples.report(output_, case_.label, x_, at_);
  }

 private:
  /// Factors once; rank 0 checks the factors.
  void check() {
    fill(mine_, layout_, wire_.rank(), paper_);
    Factorisation<W> factorisation(wire_, layout_, mine_, case_.mode);
    factorisation.run();
    Columns whole(layout_.n, wire_.rank() == 0 ? layout_.n : 0);
    gather_columns(wire_, layout_, mine_, whole);
    if (wire_.rank() != 0) return;
    const double value = residual(whole, factorisation.pivots());
    output_.check({case_.label, "residual", "", x_}, at_, value, residual_bound);
  }

  /// Returns rank 0's value on every rank.
  bool go_on(bool more) {
    wire_.broadcast(std::as_writable_bytes(std::span(&more, 1)), 0);
    return more;
  }

  W& wire_;
  Layout layout_;
  Case case_;
  Output& output_;
  PaperMatrix paper_;
  Columns mine_;
  double budget_s_;
  std::string x_;
  double at_;
};

template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  openblas_set_num_threads(1);  // ranks run in parallel, BLAS does not
  output.parameter("processors", processors(gather_places(wire)));
  const int block = static_cast<int>(options.number("block", 1));
  for (const auto n : options.sizes("sizes", "1000")) {
    for (const auto& which : cases_of(options)) {
      Experiment<W>(wire, {static_cast<int>(n), block, wire.size()}, which, options, output).run();
    }
  }
}

}  // namespace tonari::bench::lu
