#pragma once

// Question: how fast is SPLASH-2's FFT on one-sided transfers?
// Method:   the six steps of Bailey's FFT, as in SPLASH-2. n points are a matrix of sqrt(n) x sqrt(n) complex numbers,
//           whose rows are dealt to the ranks in blocks. The steps: transpose, transform the rows, multiply by roots of
//           unity, transpose, transform the rows, transpose. FFTW transforms the rows. A transposition packs the data
//           for each other rank, transposed, and moves it in one of six ways:
//             push        a push per sub-row, the numbers of one row that come from one rank
//             push-256    the same, in pushes of at most 256 bytes
//             push-whole  one push_regions per other rank
//             pull        a pull per sub-row, untransposed; then the rank transposes it
//             queue       the pushes of `push`, posted to a queue as one batch of descriptors
//             all-to-all  messages: the collective, packed and unpacked
//           The input is copied (every rank has all of it, so the first transposition needs no transfers, and two
//           remain) or dealt by rows (three transpositions with transfers). With copied input and 4,096 points `push`
//           makes the number of transfers of the paper, 128 (ranks - 1). Transforms are timed in batches of about half
//           a millisecond (batches.hpp).
// Output:   time in ms against ranks, one sample per batch: a transform on the slowest rank. Per transform, one sample
//           per rank and batch: compute (rows, packing), transfer, wait (in barriers), in ms. transfers: of all ranks
//           in a transform; a push_regions or an all-to-all counts as one per pair of ranks. Check: for each way the
//           result against one call of FFTW, and the inverse of the result against the input.

#include "harness/batches.hpp"
#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"
#include "matrix.hpp"
#include "transpose.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tonari::bench::splash_fft {

inline constexpr double batch_us = 500;
inline constexpr double residual_bound = 16;
inline constexpr int tag_rows = 31;
inline constexpr int tag_phases = 32;
inline constexpr int tag_values = 33;

/// The six steps. The source is the input; the result is in `first`.
template <CollectiveWire W, SharedMemory M>
class Transform {
 public:
  Transform(W& wire, M& memory, const Layout& layout)
      : layout_(layout),
        rank_(wire.rank()),
        transposition_(wire, memory, layout),
        forward_(layout, rank_, rows(Matrix::first), Direction::forward),
        inverse_(layout, rank_, rows(Matrix::first), Direction::inverse) {}

  [[nodiscard]] Complex* rows(Matrix matrix) noexcept { return transposition_.rows(matrix); }
  [[nodiscard]] std::uint64_t transfers() const noexcept { return transposition_.transfers(); }

  /// `copied` is the entire input, row by row. If it is null, the input is dealt, in the shared memory.
  void run(const Way& way, const Block* copied, Direction direction, Phases& phases) {
    Watch watch;
    if (copied != nullptr) {
      const Block mine{copied->start + layout_.first_row(rank_), copied->pitch};
      copy_transposed(mine, {rows(Matrix::first), layout_.pitch()}, layout_.side, layout_.rows());
    } else {
      transposition_.run(way, Matrix::input, Matrix::first, watch, phases);
    }
    const auto& computation = direction == Direction::forward ? forward_ : inverse_;
    computation.transform_and_twist(rows(Matrix::first));
    watch.lap(phases.compute);
    transposition_.run(way, Matrix::first, Matrix::second, watch, phases);
    computation.transform(rows(Matrix::second));
    watch.lap(phases.compute);
    transposition_.run(way, Matrix::second, Matrix::first, watch, phases);
  }

 private:
  Layout layout_;
  int rank_;
  Transposition<W, M> transposition_;
  RowTransform forward_;
  RowTransform inverse_;
};

/// The cases to measure, the same on all ranks.
struct Task {
  std::vector<Way> chosen;
  bool copied;
  double budget_us;  // per way and size

  explicit Task(const Options& options)
      : copied(options.text("input", "copied") == "copied"), budget_us(options.number("budget-us", 30000)) {
    for (const auto& name : options.list("ways", "push")) {
      const auto way = std::ranges::find(ways, name, &Way::name);
      if (way == ways.end()) throw std::invalid_argument("splash_fft: there is no way " + name);
      chosen.push_back(*way);
    }
  }
};

/// Measures all ways of one size.
template <CollectiveWire W, SharedMemory M>
class Experiment {
 public:
  Experiment(W& wire, M& memory, const Layout& layout, const Task& task, Output& output)
      : wire_(wire), memory_(memory), layout_(layout), task_(task), output_(output), transform_(wire, memory, layout) {
    if (wire.rank() == 0) expected_ = serial_transform(layout.points());
    if (!task.copied) return;
    everything_.resize(layout.side * layout.pitch());
    copied_ = Block{everything_.data(), layout.pitch()};
    fill(0, layout.side, everything_.data());
  }

  void run() {
    for (const auto& way : task_.chosen) {
      label_ = std::string(way.name) + " points " + std::to_string(layout_.points());
      deal_input();
      check_result(way);
      check_inverse(way);
      deal_input();
      measure(way);
    }
  }

 private:
  void fill(std::size_t first, std::size_t rows, Complex* to) const {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < layout_.side; ++i) {
        to[row * layout_.pitch() + i] = input_point((first + row) * layout_.side + i);
      }
    }
  }
  void deal_input() {
    fill(layout_.first_row(wire_.rank()), layout_.rows(), transform_.rows(Matrix::input));
    memory_.barrier();
  }

  void compute(const Way& way, bool copied, Direction direction) {
    Phases phases;
    transform_.run(way, copied ? &*copied_ : nullptr, direction, phases);
    memory_.barrier();  // all ranks must be done with this rank's rows
  }

  /// Compares the rows of one rank with the expected numbers; `expected(i)` is number i of all.
  template <class Expected>
  Deviation compare(std::span<const Complex> rows, int rank, double scale, Expected expected) const {
    Deviation deviation;
    for (std::size_t row = 0; row < layout_.rows(); ++row) {
      for (std::size_t i = 0; i < layout_.side; ++i) {
        const auto index = (layout_.first_row(rank) + row) * layout_.side + i;
        deviation.add(rows[row * layout_.pitch() + i] * scale, expected(index));
      }
    }
    return deviation;
  }
  [[nodiscard]] std::span<Complex> result() { return {transform_.rows(Matrix::first), layout_.part()}; }

  void check_result(const Way& way) {
    compute(way, task_.copied, Direction::forward);
    if (wire_.rank() != 0) {
      wire_.send(std::as_bytes(result()), 0, tag_rows);
      return;
    }
    const auto expected = [&](std::size_t index) { return expected_[index]; };
    Deviation all = compare(result(), 0, 1, expected);
    std::vector<Complex> theirs(layout_.part());
    for (int rank = 1; rank < layout_.ranks; ++rank) {
      wire_.receive(std::as_writable_bytes(std::span(theirs)), rank, tag_rows);
      all.add(compare(theirs, rank, 1, expected));
    }
    report_residual(all);
  }

  /// Transforms the result back. Its input is dealt: no rank has all of it.
  void check_inverse(const Way& way) {
    std::ranges::copy(result(), transform_.rows(Matrix::input));
    memory_.barrier();
    compute(way, false, Direction::inverse);
    const auto mine = compare(result(), wire_.rank(), 1 / static_cast<double>(layout_.points()), input_point);
    Deviation all;
    for (const auto& deviation : gather_values(wire_, layout_.ranks, mine, tag_values)) all.add(deviation);
    if (wire_.rank() == 0) report_residual(all);
  }

  void report_residual(const Deviation& deviation) {
    output_.check({label_, "residual", "", "ranks"}, layout_.ranks, deviation.residual(layout_.points()),
                  residual_bound);
  }

  void measure(const Way& way) {
    std::vector<Phases> batches;
    std::uint64_t transfers = 0;
    auto samples = time_together_us(wire_, batch_us, task_.budget_us, [&](std::uint32_t transforms) {
      Phases all;
      const auto before = transform_.transfers();
      for (std::uint32_t i = 0; i < transforms; ++i) {
        transform_.run(way, task_.copied ? &*copied_ : nullptr, Direction::forward, all);
      }
      transfers = (transform_.transfers() - before) / transforms;
      batches.push_back({all.compute / transforms, all.transfer / transforms, all.wait / transforms});
    });
    for (auto& sample : samples) sample /= 1000;
    output_.samples({label_, "time", "ms", "ranks"}, layout_.ranks, samples);
    report_transfers(transfers);
    report_phases(std::span(batches).last(samples.size()));  // the former batches were trials
  }

  void report_transfers(std::uint64_t mine) {
    double all = 0;
    for (const auto one : gather_values(wire_, layout_.ranks, mine, tag_values)) all += static_cast<double>(one);
    output_.samples({label_, "transfers", "", "ranks"}, layout_.ranks, {all});
  }

  void report_phases(std::span<const Phases> mine) {
    if (wire_.rank() != 0) {
      wire_.send(std::as_bytes(mine), 0, tag_phases);
      return;
    }
    std::vector<Phases> all(mine.begin(), mine.end());
    for (int rank = 1; rank < layout_.ranks; ++rank) {
      all.resize(all.size() + mine.size());
      wire_.receive(std::as_writable_bytes(std::span(all).last(mine.size())), rank, tag_phases);
    }
    for (const auto& [metric, phase] : {std::pair{"compute", &Phases::compute},
                                        std::pair{"transfer", &Phases::transfer}, std::pair{"wait", &Phases::wait}}) {
      std::vector<double> ms;
      for (const auto& phases : all) ms.push_back(phases.*phase * 1000);
      output_.samples({label_, metric, "ms", "ranks"}, layout_.ranks, ms);
    }
  }

  W& wire_;
  M& memory_;
  Layout layout_;
  const Task& task_;
  Output& output_;
  Transform<W, M> transform_;
  std::vector<Complex> expected_;    // on rank 0
  std::vector<Complex> everything_;  // the copied input
  std::optional<Block> copied_;
  std::string label_;
};

inline Layout layout_of(std::size_t points, int ranks) {
  const auto side = static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(points))));
  if (side < 2 || side * side != points || side % static_cast<std::size_t>(ranks) != 0) {
    throw std::invalid_argument("splash_fft: the ranks do not divide the rows of " + std::to_string(points) +
                                " points");
  }
  return {side, ranks};
}

/// `share(bytes)` creates shared memory of this size per rank.
template <CollectiveWire W, class Share>
void run(W& wire, const Options& options, Output& output, Share share) {
  output.parameter("processors", processors(gather_places(wire)));
  const Task task(options);
  for (const auto points : options.sizes("sizes", "4096")) {
    const auto layout = layout_of(points, wire.size());
    using Memory = std::invoke_result_t<Share, std::size_t>;
    Memory memory = share(Transposition<W, Memory>::bytes(layout));
    Experiment<W, Memory>(wire, memory, layout, task, output).run();
    wire.barrier();
  }
}

}  // namespace tonari::bench::splash_fft
