#pragma once

#include "mpi.h"

#include <algorithm>
#include <cstddef>

namespace tonari::mpi {

/// An array of counts or displacements of a program, of 32 or of 64 bits. The array stays the program's.
class Counts {
 public:
  explicit Counts(const int* narrow) noexcept : narrow_(narrow) {}
  explicit Counts(const MPI_Count* wide) noexcept : wide_(wide) {}
  [[nodiscard]] MPI_Count operator[](MPI_Count index) const noexcept {
    return narrow_ != nullptr ? narrow_[index] : wide_[index];
  }
  struct Extremes {
    MPI_Count least;
    MPI_Count most;
  };
  /// Returns the least and the greatest of the first `count`, at least one.
  [[nodiscard]] Extremes minmax(MPI_Count count) const noexcept {
    return narrow_ != nullptr ? minmax(narrow_, count) : minmax(wide_, count);
  }
  /// Writes the products of the first `count` with a factor. The caller has checked that they do not overflow.
  void copy(MPI_Count count, MPI_Count factor, MPI_Count* to) const noexcept {
    if (narrow_ != nullptr) {
      for (MPI_Count i = 0; i < count; ++i) to[i] = narrow_[i] * factor;
    } else {
      for (MPI_Count i = 0; i < count; ++i) to[i] = wide_[i] * factor;
    }
  }
  [[nodiscard]] bool is_null() const noexcept { return narrow_ == nullptr && wide_ == nullptr; }

 private:
  template <class Number>
  static Extremes minmax(const Number* numbers, MPI_Count count) noexcept {
    Number least = numbers[0];
    Number most = numbers[0];
    for (MPI_Count i = 1; i < count; ++i) {
      least = std::min(least, numbers[i]);
      most = std::max(most, numbers[i]);
    }
    return {least, most};
  }

  const int* narrow_ = nullptr;
  const MPI_Count* wide_ = nullptr;
};

}  // namespace tonari::mpi
