#pragma once

// Question: how fast is Jacobi's iteration with messages, with shared arrays or guarded rows, and with threads?
// Method:   n x n doubles and a border. Each step makes every element the mean of its four neighbours, from one grid
//           into another. Rows are dealt to the ranks in bands. All cases use one function to compute a row:
//             message  a rank has its band; it starts the exchange of the outermost rows, computes the others, waits,
//                      and computes the outermost rows
//             share    two shared arrays, the home of a band is its rank; a barrier per step
//             guarded  a rank has its band; the outermost rows of each grid are guarded data, which a step writes
//                      first; a barrier per step
//             openmp   threads of one process, all rows in its memory
//           Steps are timed in batches of about two milliseconds (steps.hpp).
// Output:   rate in GFLOP/s (four operations per element) against ranks, one sample per batch, of the slowest rank.
//           Check: elements that differ in any bit from the same steps on one rank.

#include "kernels/bands.hpp"
#include "kernels/steps.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tonari::bench::jacobi {

using Rows = Lines<double>;

inline constexpr double operations_an_element = 4;

inline Bands bands_of(std::size_t n, int ranks) {
  constexpr std::size_t line_elements = 8;  // per cache line
  return {n, (n + 2 + line_elements - 1) / line_elements * line_elements, ranks};
}

inline void fill(const Rows& rows, Band band, std::size_t width) {
  for (std::size_t row = band.first; row < band.end; ++row) {
    for (std::size_t i = 0; i < width; ++i) rows[row][i] = static_cast<double>((row * 7 + i * i * 13) % 101) / 101;
  }
}

/// Not inlined, so that all cases run the same code and round alike.
[[gnu::noinline]] inline void relax(const double* above, const double* row, const double* below, double* to,
                                    std::size_t n) {
  for (std::size_t i = 1; i <= n; ++i) to[i] = 0.25 * ((above[i] + below[i]) + (row[i - 1] + row[i + 1]));
}

inline void sweep(const Rows& from, const Rows& to, Band band, std::size_t n) {
  for (std::size_t row = band.first; row < band.end; ++row) relax(from[row - 1], from[row], from[row + 1], to[row], n);
}

/// Two grids; each step reads one and writes the other.
template <class Grid>
class Grids {
 public:
  template <class Make>
  explicit Grids(Make make) : grids_{make(), make()} {}

  [[nodiscard]] Grid& now() noexcept { return grids_[steps_ % 2]; }
  [[nodiscard]] Grid& next() noexcept { return grids_[(steps_ + 1) % 2]; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  void step() noexcept { ++steps_; }

 private:
  std::array<Grid, 2> grids_;
  std::uint64_t steps_ = 0;
};

/// The result of this many steps on one rank.
inline LocalLines<double> serial_result(std::size_t n, std::uint64_t steps) {
  const Bands bands = bands_of(n, 1);
  Grids<LocalLines<double>> grids([&] { return LocalLines<double>(bands); });
  for (auto* const grid : {&grids.now(), &grids.next()}) fill(grid->lines(), bands.owned(0), bands.width);
  for (std::uint64_t step = 0; step < steps; ++step, grids.step()) {
    sweep(grids.now().lines(), grids.next().lines(), bands.of(0), n);
  }
  return std::move(grids.now());
}

/// The case `message`: each rank has its band, and exchanges rows.
template <StartedWire W>
class Messages {
 public:
  Messages(W& wire, std::size_t n)
      : wire_(wire), n_(n), bands_(bands_of(n, wire.size())), band_(bands_.of(wire.rank())), grids_([&] {
          return MessageLines<W, double>(wire, bands_);
        }) {
    const Band own = bands_.owned(wire.rank());
    for (auto* const grid : {&grids_.now(), &grids_.next()}) fill(grid->lines(), own, bands_.width);
  }

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, grids_.step()) {
      const Rows& from = grids_.now().lines();
      const Rows& to = grids_.next().lines();
      grids_.now().start_exchange();
      sweep(from, to, {band_.first + 1, band_.end - 1}, n_);
      grids_.now().finish_exchange();
      sweep(from, to, {band_.first, band_.first + 1}, n_);
      if (band_.first + 1 != band_.end) sweep(from, to, {band_.end - 1, band_.end}, n_);
    }
  }

  std::size_t wrong() {
    if (wire_.rank() != 0) return differing_of_all<W, double>(wire_, bands_, grids_.now().lines(), {});
    return differing_of_all(wire_, bands_, grids_.now().lines(), serial_result(n_, grids_.steps()).lines());
  }

 private:
  W& wire_;
  std::size_t n_;
  Bands bands_;
  Band band_;
  Grids<MessageLines<W, double>> grids_;
};

inline std::size_t order(const Options& options) { return static_cast<std::size_t>(options.number("size", 2000)); }

inline StepsTask task_of(const Options& options, int ranks) {
  StepsTask task = steps_task(options, ranks);
  const auto n = static_cast<double>(order(options));
  task.operations = operations_an_element * n * n;
  return task;
}

/// The case `message`.
template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  output.parameter("processors", processors(gather_places(wire)));
  Messages<W> program(wire, order(options));
  measure_steps(wire, task_of(options, wire.size()), program, output);
}

}  // namespace tonari::bench::jacobi
