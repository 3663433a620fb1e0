#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

namespace tonari::bench {

/// A part of a matrix, stored by columns, `stride` apart. The stride is no power of two, with which the columns would
/// share cache sets.
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
  /// The memory of the first `columns` columns, with the gaps between them.
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

/// The matrix of the Paragon study: a(i, j) = sqrt(2 / (n + 1)) sin(pi i j / (n + 1)), i and j from 1. It is
/// orthogonal, with condition number 1, and symmetric, so it is its own inverse.
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
