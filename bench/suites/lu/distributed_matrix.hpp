#pragma once

#include "kernels/matrix.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <vector>

namespace tonari::bench::lu {

/// The distribution of columns: panels of `block` neighbouring columns (the last may be narrower), dealt cyclically.
struct Layout {
  int n;
  int block;
  int ranks;

  [[nodiscard]] int panels() const noexcept { return (n + block - 1) / block; }
  [[nodiscard]] int owner(int panel) const noexcept { return panel % ranks; }
  [[nodiscard]] int start(int panel) const noexcept { return panel * block; }
  [[nodiscard]] int width(int panel) const noexcept { return std::min(block, n - start(panel)); }
  /// Returns the number of columns of `rank` in the panels before `panel`, which may be past the last.
  [[nodiscard]] int columns_before(int panel, int rank) const noexcept {
    panel = std::min(panel, panels());
    const int mine = panel > rank ? (panel - rank + ranks - 1) / ranks : 0;
    const bool has_last = panel == panels() && mine > 0 && owner(panel - 1) == rank;
    return mine * block - (has_last ? block - width(panel - 1) : 0);
  }
  [[nodiscard]] int columns(int rank) const noexcept { return columns_before(panels(), rank); }
};

/// A factored panel as it is sent: the exchanged rows, then L from its diagonal downwards, column by column.
struct Panel {
  int start = 0;
  int width = 0;
  int rows = 0;  // of L: from `start` to the end
  std::vector<double> values;

  void shape(int n, int first, int count) {
    start = first;
    width = count;
    rows = n - first;
    values.resize(static_cast<std::size_t>(width) + static_cast<std::size_t>(width) * static_cast<std::size_t>(rows));
  }
  [[nodiscard]] double* lower() noexcept { return values.data() + width; }
  /// The row that was exchanged with row start + i. A double holds it exactly.
  [[nodiscard]] int pivot(int i) const noexcept { return static_cast<int>(values[static_cast<std::size_t>(i)]); }
};

/// Exchanges rows as `panel` says in columns [first, last) of `part`.
inline void exchange_rows(Columns& part, const Panel& panel, int first, int last) noexcept {
  for (int column = first; column < last; ++column) {
    for (int i = 0; i < panel.width; ++i)
      std::swap(*part.at(panel.start + i, column), *part.at(panel.pivot(i), column));
  }
}

/// Factors the columns of `part` from `first` on into `panel`, by outer products with partial pivoting.
inline void factor(Columns& part, int first, Panel& panel) {
  const int n = part.rows();
  const int ld = part.stride();
  for (int i = 0; i < panel.width; ++i) {
    const int diagonal = panel.start + i;
    const int below = n - diagonal - 1;
    double* const top = part.at(diagonal, first + i);
    const int pivot = diagonal + static_cast<int>(cblas_idamax(below + 1, top, 1));
    panel.values[static_cast<std::size_t>(i)] = pivot;
    cblas_dswap(panel.width, part.at(diagonal, first), ld, part.at(pivot, first), ld);
    if (*top == 0) throw std::runtime_error("lu: the matrix is singular");
    cblas_dscal(below, 1 / *top, top + 1, 1);
    const int right = panel.width - i - 1;
    if (right > 0) cblas_dger(CblasColMajor, below, right, -1, top + 1, 1, top + ld, ld, top + ld + 1, ld);
  }
  for (int i = 0; i < panel.width; ++i) {
    std::copy_n(part.at(panel.start, first + i), panel.rows,
                panel.lower() + static_cast<std::ptrdiff_t>(i) * panel.rows);
  }
}

/// Applies a factored panel to columns [first, last) of `part`, to its right: exchanges rows, computes a block row of
/// U, and subtracts the outer product from the rest.
inline void update(Columns& part, Panel& panel, int first, int last) noexcept {
  const int count = last - first;
  if (count <= 0) return;
  exchange_rows(part, panel, first, last);
  const int ld = part.stride();
  double* const top = part.at(panel.start, first);
  const double* const lower = panel.lower();
  const int below = panel.rows - panel.width;
  if (panel.width == 1) {
    cblas_dger(CblasColMajor, below, count, -1, lower + 1, 1, top, ld, top + 1, ld);
    return;
  }
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, panel.width, count, 1, lower, panel.rows,
              top, ld);
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, below, count, panel.width, -1, lower + panel.width, panel.rows,
              top, ld, 1, top + panel.width, ld);
}

/// The largest sum of absolute values of a column.
inline double norm1(Columns& matrix) noexcept {
  double largest = 0;
  for (int column = 0; column < matrix.count(); ++column) {
    const double sum = cblas_dasum(matrix.rows(), matrix.at(0, column), 1);
    if (!(sum <= largest)) largest = sum;  // keeps a NaN
  }
  return largest;
}

/// ||PA - LU|| / (n ||A|| eps) in the 1-norm, as LAPACK's test programs (dget01) have it; they accept up to 30.
/// `factors` holds L and U, `pivots` the row exchanged with each row.
inline double residual(Columns& factors, const std::vector<int>& pivots) {
  const int n = factors.rows();
  Columns product(n, n);  // becomes U, then LU
  for (int column = 0; column < n; ++column) std::copy_n(factors.at(0, column), column + 1, product.at(0, column));
  cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, n, n, 1, factors.at(0, 0),
              factors.stride(), product.at(0, 0), product.stride());
  const PaperMatrix paper(n);
  Columns original(n, n);
  for (int column = 0; column < n; ++column) paper.fill(original, column, column);
  const double norm = norm1(original);
  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < n; ++row)
      std::swap(*original.at(row, column), *original.at(pivots[static_cast<std::size_t>(row)], column));
    cblas_daxpy(n, -1, original.at(0, column), 1, product.at(0, column), 1);
  }
  const double eps = std::numeric_limits<double>::epsilon() / 2;  // named eps in LAPACK
  return norm1(product) / n / norm / eps;
}

}  // namespace tonari::bench::lu
