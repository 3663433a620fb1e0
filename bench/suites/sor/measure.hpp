#pragma once

// Question: how fast is red-black relaxation where all pages are written by all ranks?
// Method:   n x n doubles and a border, successive over-relaxation in place. A step changes the elements whose row and
//           column have an even sum, then the others. *Columns* are dealt to the ranks and rows are contiguous in
//           memory, so every rank writes every page: deliberate false sharing. All cases use one function to compute a
//           part of a row:
//             message           a rank has its columns, and exchanges the outermost, packed, after each half of a step
//             share             one shared array, each row on its own pages, homes dealt by rows; a barrier after each
//                               half of a step
//             share-apart-rows  the same with rows dealt, the home of a row is its rank: no false sharing
//             guarded           as message, but the packed columns are guarded data, two of each for the two halves; a
//                               barrier after each half
//             openmp            threads of one process
//           Steps are timed in batches of about two milliseconds (steps.hpp).
// Output:   rate in cells/us against ranks, one sample per batch, of the slowest rank. Check: elements that differ in
//           any bit from the same steps on one rank.

#include "kernels/bands.hpp"
#include "kernels/steps.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tonari::bench::sor {

using Rows = Lines<double>;

inline constexpr double omega = 1.5;

/// The elements that a rank computes.
struct Part {
  Band rows;
  Band columns;
};

/// Each row begins on a page.
inline Bands bands_of(std::size_t n, int ranks) {
  constexpr std::size_t page_elements = 4096 / sizeof(double);
  return {n, (n + 2 + page_elements - 1) / page_elements * page_elements, ranks};
}

inline double start_value(std::size_t row, std::size_t column) noexcept {
  return static_cast<double>((row * 7 + column * column * 13) % 101) / 101;
}

/// Every second element of a row. Not inlined: so it is the same code in all cases, and rounds alike.
[[gnu::noinline]] inline void relax(const double* above, double* row, const double* below, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 2) {
    const double mean = 0.25 * ((above[i] + below[i]) + (row[i - 1] + row[i + 1]));
    row[i] += omega * (mean - row[i]);
  }
}

/// Elements whose row and column, and `parity`, add up to an even number.
inline void half_step(const Rows& rows, const Part& part, std::size_t parity) {
  for (std::size_t row = part.rows.first; row < part.rows.end; ++row) {
    const std::size_t first = part.columns.first + (row + part.columns.first + parity) % 2;
    if (first >= part.columns.end) continue;
    relax(rows[row - 1] + first, rows[row] + first, rows[row + 1] + first, part.columns.end - first);
  }
}

/// The result of this many steps on one rank.
inline LocalLines<double> serial_result(std::size_t n, std::uint64_t steps) {
  const Bands bands = bands_of(n, 1);
  LocalLines<double> grid(bands);
  for (std::size_t row = 0; row < n + 2; ++row) {
    for (std::size_t column = 0; column < n + 2; ++column) grid.lines()[row][column] = start_value(row, column);
  }
  for (std::uint64_t half = 0; half < 2 * steps; ++half) half_step(grid.lines(), {bands.of(0), bands.of(0)}, half % 2);
  return grid;
}

/// The columns of a rank, from 1 on, and one on either side.
class Columns {
 public:
  Columns(std::size_t n, int rank, int ranks)
      : n_(n), bands_(bands_of(n, ranks)), mine_(bands_.of(rank)), grid_(Bands(n, count() + 2, 1)) {
    for (std::size_t row = 0; row < n + 2; ++row) {
      for (std::size_t i = 0; i < count() + 2; ++i) grid_.lines()[row][i] = start_value(row, mine_.first - 1 + i);
    }
  }

  [[nodiscard]] std::size_t count() const noexcept { return mine_.end - mine_.first; }
  void relax(std::size_t colour) {
    half_step(grid_.lines(), {{1, n_ + 1}, {1, count() + 1}}, colour + mine_.first - 1);
  }
  void pack(std::size_t column, std::span<double> to) const {
    for (std::size_t row = 1; row <= n_; ++row) to[row - 1] = grid_.lines()[row][column];
  }
  void unpack(std::size_t column, std::span<const double> from) {
    for (std::size_t row = 1; row <= n_; ++row) grid_.lines()[row][column] = from[row - 1];
  }

  /// Returns the number of wrong elements of all ranks on rank 0, after this many steps. Every rank calls it.
  template <StartedWire W>
  std::size_t wrong(W& wire, std::uint64_t steps) const {
    constexpr int tag_column = 57;
    std::vector<double> column(n_);
    if (wire.rank() != 0) {
      for (std::size_t i = 1; i <= count(); ++i) {
        pack(i, column);
        wire.send(std::as_bytes(std::span(column)), 0, tag_column);
      }
      return 0;
    }
    const auto expected = serial_result(n_, steps);
    std::size_t wrong = 0;
    for (int rank = 0; rank < wire.size(); ++rank) {
      const Band theirs = bands_.of(rank);
      for (std::size_t i = theirs.first; i < theirs.end; ++i) {
        if (rank == 0) {
          pack(i, column);
        } else {
          wire.receive(std::as_writable_bytes(std::span(column)), rank, tag_column);
        }
        for (std::size_t row = 1; row <= n_; ++row) wrong += column[row - 1] == expected.lines()[row][i] ? 0 : 1;
      }
    }
    return wrong;
  }

 private:
  std::size_t n_;
  Bands bands_;  // of columns
  Band mine_;
  LocalLines<double> grid_;
};

/// Each rank has its columns, and exchanges them.
template <StartedWire W>
class Messages {
 public:
  Messages(W& wire, std::size_t n)
      : wire_(wire),
        columns_(n, wire.rank(), wire.size()),
        sent_{std::vector<double>(n), std::vector<double>(n)},
        received_(sent_) {}

  void run(std::uint32_t steps) {
    for (; steps != 0; --steps, ++steps_) {
      for (const std::size_t colour : {0, 1}) {
        columns_.relax(colour);
        exchange();
      }
    }
  }

  std::size_t wrong() { return columns_.wrong(wire_, steps_); }

 private:
  static constexpr std::size_t left = 0;
  static constexpr std::size_t right = 1;

  void exchange() {
    const int rank = wire_.rank();
    if (rank != 0) start(left, rank - 1, 1);
    if (rank + 1 != wire_.size()) start(right, rank + 1, columns_.count());
    wire_.wait_all(requests_);
    requests_.clear();
    if (rank != 0) columns_.unpack(0, received_[left]);
    if (rank + 1 != wire_.size()) columns_.unpack(columns_.count() + 1, received_[right]);
  }
  void start(std::size_t side, int peer, std::size_t column) {
    constexpr int tag_exchange = 55;  // a message that goes right has the next
    columns_.pack(column, sent_[side]);
    const int tag_sent = tag_exchange + static_cast<int>(side);
    const int tag_received = tag_exchange + static_cast<int>(1 - side);
    requests_.push_back(wire_.start_receive(std::as_writable_bytes(std::span(received_[side])), peer, tag_received));
    requests_.push_back(wire_.start_send(std::as_bytes(std::span(sent_[side])), peer, tag_sent));
  }

  W& wire_;
  Columns columns_;
  std::array<std::vector<double>, 2> sent_;
  std::array<std::vector<double>, 2> received_;
  std::vector<typename W::Request> requests_;
  std::uint64_t steps_ = 0;
};

inline std::size_t order(const Options& options) { return static_cast<std::size_t>(options.number("size", 500)); }

inline StepsTask task_of(const Options& options, int ranks) {
  StepsTask task = steps_task(options, ranks);
  const auto n = static_cast<double>(order(options));
  task.operations = n * n;
  task.unit = "cells/us";
  task.a_unit = 1;
  return task;
}

/// The case `message`.
template <StartedWire W>
void run(W& wire, const Options& options, Output& output) {
  output.parameter("processors", processors(gather_places(wire)));
  Messages<W> program(wire, order(options));
  measure_steps(wire, task_of(options, wire.size()), program, output);
}

}  // namespace tonari::bench::sor
