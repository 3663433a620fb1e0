#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

namespace tonari::bench {

/// A part of a matrix, column by column. Columns lie `stride` apart: not a power of two, whose lines would share sets
/// of the caches.
class Columns {
 public:
  Columns(int rows, int count)
      : rows_(rows),
        count_(count),
        stride_((rows + 7) / 8 * 8 + ((rows + 7) / 8 % 64 == 0 ? 8 : 0)),
        values_(static_cast<std::size_t>(stride_) * static_cast<std::size_t>(count)) {}

  [[nodiscard]] double* at(int row, int column) noexcept {
    return values_.data() + static_cast<std::ptrdiff_t>(column) * stride_ + row;
  }
  /// The first `columns` as they lie in memory, what is between them included.
  [[nodiscard]] std::span<double> first(int columns) noexcept {
    return std::span(values_).first(static_cast<std::size_t>(stride_) * static_cast<std::size_t>(columns));
  }
  [[nodiscard]] int rows() const noexcept { return rows_; }
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] int stride() const noexcept { return stride_; }

 private:
  int rows_;
  int count_;
  int stride_;
  std::vector<double> values_;
};

/// The Paragon study's matrix: a(i, j) = sqrt(2 / (n + 1)) sin(pi i j / (n + 1)), i and j from 1. Orthogonal: its
/// condition is 1. Symmetric too: it is its own inverse.
class PaperMatrix {
 public:
  explicit PaperMatrix(int n) : period_(2 * (n + 1)), values_(static_cast<std::size_t>(period_)) {
    const double scale = std::sqrt(2.0 / (n + 1));
    for (int k = 0; k < period_; ++k)
      values_[static_cast<std::size_t>(k)] = scale * std::sin(std::numbers::pi * k / (n + 1));
  }

  /// Fills column `to` of `part` with column `column` (from 0) of the matrix.
  void fill(Columns& part, int to, int column) const noexcept {
    double* const out = part.at(0, to);
    int k = 0;
    for (int row = 0; row < part.rows(); ++row) {
      k += column + 1;
      if (k >= period_) k -= period_;
      out[row] = values_[static_cast<std::size_t>(k)];
    }
  }

 private:
  int period_;  // sin(pi k / (n + 1)) repeats after it
  std::vector<double> values_;
};

}  // namespace tonari::bench
