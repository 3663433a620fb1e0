#pragma once

#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <span>
#include <vector>

namespace tonari::bench::splash_fft {

using Complex = std::complex<double>;

/// The distribution of the rows of a square matrix: blocks of neighbouring rows, of equal height.
struct Layout {
  std::size_t side;
  int ranks;

  [[nodiscard]] std::size_t points() const noexcept { return side * side; }
  [[nodiscard]] std::size_t rows() const noexcept { return side / static_cast<std::size_t>(ranks); }
  [[nodiscard]] std::size_t first_row(int rank) const noexcept { return static_cast<std::size_t>(rank) * rows(); }
  /// Numbers from one row to the next: one cache line more than a row, so that columns of 2^k rows do not share a set.
  [[nodiscard]] std::size_t pitch() const noexcept { return (side + 3) / 4 * 4 + 4; }
  /// Numbers in the memory of a rank's rows, gaps included.
  [[nodiscard]] std::size_t part() const noexcept { return rows() * pitch(); }
};

/// A block of a matrix: its start, and the distance of its rows.
struct Block {
  Complex* start;
  std::size_t pitch;
};

/// Transposes `rows` x `columns` numbers, tile by tile.
inline void copy_transposed(Block from, Block to, std::size_t rows, std::size_t columns) {
  constexpr std::size_t tile = 16;
  for (std::size_t row = 0; row < rows; row += tile) {
    for (std::size_t column = 0; column < columns; column += tile) {
      const auto row_end = std::min(row + tile, rows);
      const auto column_end = std::min(column + tile, columns);
      for (std::size_t j = column; j < column_end; ++j) {
        for (std::size_t i = row; i < row_end; ++i) to.start[j * to.pitch + i] = from.start[i * from.pitch + j];
      }
    }
  }
}

enum class Direction : int { forward = FFTW_FORWARD, inverse = FFTW_BACKWARD };

struct DestroyPlan {
  void operator()(fftw_plan_s* plan) const { fftw_destroy_plan(plan); }
};
using Plan = std::unique_ptr<fftw_plan_s, DestroyPlan>;

inline fftw_complex* as_fftw(Complex* numbers) noexcept { return reinterpret_cast<fftw_complex*>(numbers); }

/// Plans without measuring, so that every system gets the same plan. Does not access the memory.
inline Plan make_plan(std::size_t points, Complex* from, Complex* to, Direction direction) {
  return Plan(fftw_plan_dft_1d(static_cast<int>(points), as_fftw(from), as_fftw(to), static_cast<int>(direction),
                               FFTW_ESTIMATE));
}

/// exp(-2 pi i k / n), or its inverse.
inline Complex root(std::size_t k, std::size_t n, Direction direction) {
  const double sign = direction == Direction::forward ? -1 : 1;
  return std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n));
}

/// The computation on a rank's rows. `rows` are rows that it will transform, or rows with the same alignment.
class RowTransform {
 public:
  RowTransform(const Layout& layout, int rank, Complex* rows, Direction direction)
      : layout_(layout), plan_(make_plan(layout.side, rows, rows, direction)) {
    roots_.reserve(layout.rows() * layout.side);
    for (std::size_t row = layout.first_row(rank); row < layout.first_row(rank) + layout.rows(); ++row) {
      for (std::size_t k = 0; k < layout.side; ++k) roots_.push_back(root(row * k, layout.points(), direction));
    }
  }

  void transform(Complex* rows) const noexcept {
    for (std::size_t row = 0; row < layout_.rows(); ++row) transform_row(rows + row * layout_.pitch());
  }
  /// The same, and multiplies with the roots of unity ("twiddle").
  void transform_and_twist(Complex* rows) const noexcept {
    for (std::size_t row = 0; row < layout_.rows(); ++row) {
      Complex* const numbers = rows + row * layout_.pitch();
      const Complex* const roots = roots_.data() + row * layout_.side;
      transform_row(numbers);
      for (std::size_t k = 0; k < layout_.side; ++k) numbers[k] = product(numbers[k], roots[k]);
    }
  }

 private:
  void transform_row(Complex* row) const noexcept { fftw_execute_dft(plan_.get(), as_fftw(row), as_fftw(row)); }
  /// Without C's rules for infinities, which cost a call.
  static Complex product(Complex a, Complex b) noexcept {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

  Layout layout_;
  Plan plan_;
  std::vector<Complex> roots_;
};

/// Point `index` of the input: the same on all ranks, between -1/2 and 1/2 in both parts.
inline Complex input_point(std::size_t index) noexcept {
  std::uint64_t x = (index + 1) * 0x9e3779b97f4a7c15;  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  const auto part = [](std::uint64_t bits) { return std::ldexp(static_cast<double>(bits & 0xffffffff), -32) - 0.5; };
  return {part(x), part(x >> 32)};
}

/// The transform of the input by one call of FFTW.
inline std::vector<Complex> serial_transform(std::size_t points) {
  std::vector<Complex> numbers(points);
  const Plan plan = make_plan(points, numbers.data(), numbers.data(), Direction::forward);
  for (std::size_t i = 0; i < points; ++i) numbers[i] = input_point(i);
  fftw_execute(plan.get());
  return numbers;
}

/// The largest difference, relative to the largest expected number.
class Deviation {
 public:
  void add(Complex found, Complex expected) noexcept {
    const double apart = std::abs(found - expected);
    if (!(apart <= apart_)) apart_ = apart;  // keeps a NaN
    size_ = std::max(size_, std::abs(expected));
  }
  void add(const Deviation& other) noexcept {
    if (!(other.apart_ <= apart_)) apart_ = other.apart_;
    size_ = std::max(size_, other.size_);
  }
  /// Relative, in units of ln(points) rounding errors: HPC Challenge accepts up to 16, of numbers of about 1.
  [[nodiscard]] double residual(std::size_t points) const noexcept {
    const double eps = std::numeric_limits<double>::epsilon() / 2;
    return apart_ / size_ / (eps * std::log(static_cast<double>(points)));
  }

 private:
  double apart_ = 0;
  double size_ = 0;
};

}  // namespace tonari::bench::splash_fft
