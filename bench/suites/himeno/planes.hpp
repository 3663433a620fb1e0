#pragma once

#include "kernels/bands.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::himeno {

// Himeno's benchmark: Poisson's equation for a pressure by Jacobi's iteration with 19 points, its coefficients in
// arrays.

/// A size that the benchmark defines. As there, arrays have one unused element in each dimension.
struct Shape {
  std::string name;
  std::size_t planes;
  std::size_t rows;
  std::size_t columns;

  [[nodiscard]] std::size_t pitch() const noexcept { return columns + 1; }
  [[nodiscard]] std::size_t plane_elements() const noexcept { return (rows + 1) * pitch(); }
  [[nodiscard]] double inner_elements() const noexcept {
    return static_cast<double>(planes - 2) * static_cast<double>(rows - 2) * static_cast<double>(columns - 2);
  }
  [[nodiscard]] Bands bands(int ranks) const { return {planes - 2, plane_elements(), ranks}; }
};

inline Shape shape_of(const std::string& name) {
  for (const Shape& shape : {Shape{"XS", 32, 32, 64}, Shape{"S", 64, 64, 128}, Shape{"M", 128, 128, 256}}) {
    if (shape.name == name) return shape;
  }
  throw std::invalid_argument("himeno: there is no size " + name);
}

inline constexpr double operations_an_element = 34;
inline constexpr float omega = 0.8F;

inline void fill(const Lines<float>& pressure, Band band, const Shape& shape) {
  const auto last = static_cast<float>(shape.planes - 1);
  for (std::size_t plane = band.first; plane < band.end; ++plane) {
    const auto i = static_cast<float>(plane);
    std::fill_n(pressure[plane], shape.plane_elements(), i * i / (last * last));
  }
}

/// The arrays other than the pressure, with their names in the benchmark.
enum Field : std::uint8_t { a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, wrk1, bnd, wrk2, fields };

/// The addresses of a plane, or of a row, in these arrays.
using Fields = std::array<float*, fields>;

/// A sum of squares, in lanes: a single sum would be one long chain of additions.
inline double sum_of_squares(std::span<const float> values) noexcept {
  constexpr std::size_t lanes = 8;
  std::array<float, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += values[i + lane] * values[i + lane];
  }
  double sum = 0;
  for (; i < values.size(); ++i) sum += static_cast<double>(values[i] * values[i]);
  for (const float lane : sums) sum += static_cast<double>(lane);
  return sum;
}

/// Returns the plane's part of gosa. Not inlined, so that all cases run the same code and round alike.
[[gnu::noinline]] inline double relax_plane(const Shape& shape, const float* before, const float* here,
                                            const float* after, const Fields& fields_of_plane) {
  static constexpr std::size_t columns_max = 512;
  std::array<float, columns_max> changes;
  double gosa = 0;
  const auto pitch = static_cast<std::ptrdiff_t>(shape.pitch());
  const auto end = static_cast<std::ptrdiff_t>(shape.columns) - 1;
  for (std::size_t row = 1; row + 1 < shape.rows; ++row) {
    const std::size_t start = row * shape.pitch();
    const float *const p0 = before + start, *const p = here + start, *const p1 = after + start;
    Fields f;
    for (std::size_t field = 0; field < fields; ++field) f[field] = fields_of_plane[field] + start;
    float* const to = f[wrk2];
#ifndef __clang__  // which lacks the attribute
#pragma GCC ivdep
#endif
    for (std::ptrdiff_t k = 1; k < end; ++k) {
      const float s0 = f[a0][k] * p1[k] + f[a1][k] * p[k + pitch] + f[a2][k] * p[k + 1] +
                       f[b0][k] * (p1[k + pitch] - p1[k - pitch] - p0[k + pitch] + p0[k - pitch]) +
                       f[b1][k] * (p[k + pitch + 1] - p[k - pitch + 1] - p[k + pitch - 1] + p[k - pitch - 1]) +
                       f[b2][k] * (p1[k + 1] - p0[k + 1] - p1[k - 1] + p0[k - 1]) + f[c0][k] * p0[k] +
                       f[c1][k] * p[k - pitch] + f[c2][k] * p[k - 1] + f[wrk1][k];
      const float change = (s0 * f[a3][k] - p[k]) * f[bnd][k];
      changes[static_cast<std::size_t>(k)] = change;
      to[k] = p[k] + omega * change;
    }
    gosa += sum_of_squares(std::span(changes).subspan(1, shape.columns - 2));
  }
  return gosa;
}

/// The coefficients of a band's planes, and the new pressure before it is copied back.
class Planes {
 public:
  Planes(const Shape& shape, Band band) : shape_(shape), band_(band) {
    for (int field = 0; field < fields; ++field) {
      const bool one = field <= a2 || (field >= c0 && field <= c2) || field == bnd;
      values_[static_cast<std::size_t>(field)].assign((band.end - band.first) * shape.plane_elements(),
                                                      field == a3 ? 1.0F / 6.0F
                                                      : one       ? 1.0F
                                                                  : 0.0F);
    }
  }

  /// Computes the new pressure of the band. Returns gosa, the sum of squared changes.
  double relax(const Lines<float>& pressure) {
    double gosa = 0;
    for (std::size_t plane = band_.first; plane < band_.end; ++plane) {
      gosa += relax_plane(shape_, pressure[plane - 1], pressure[plane], pressure[plane + 1], at(plane));
    }
    return gosa;
  }

  /// Copies the new pressure of some planes back.
  void copy_back(const Lines<float>& pressure, Band band) const {
    for (std::size_t plane = band.first; plane < band.end; ++plane) {
      const float* const from = values_[wrk2].data() + (plane - band_.first) * shape_.plane_elements();
      for (std::size_t row = 1; row + 1 < shape_.rows; ++row) {
        std::copy_n(from + row * shape_.pitch() + 1, shape_.columns - 2, pressure[plane] + row * shape_.pitch() + 1);
      }
    }
  }

 private:
  [[nodiscard]] Fields at(std::size_t plane) noexcept {
    Fields pointers;
    for (std::size_t field = 0; field < fields; ++field) {
      pointers[field] = values_[field].data() + (plane - band_.first) * shape_.plane_elements();
    }
    return pointers;
  }

  Shape shape_;
  Band band_;
  std::array<std::vector<float>, fields> values_;
};

}  // namespace tonari::bench::himeno
