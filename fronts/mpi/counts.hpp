#pragma once

#include "mpi.h"

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
  [[nodiscard]] bool is_null() const noexcept { return narrow_ == nullptr && wide_ == nullptr; }

 private:
  const int* narrow_ = nullptr;
  const MPI_Count* wide_ = nullptr;
};

}  // namespace tonari::mpi
