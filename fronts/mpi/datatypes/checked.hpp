#pragma once

#include "mpi/failure.hpp"

#include <cstddef>
#include <limits>

// Arithmetic on sizes, bounds and displacements of datatypes. Throws Failure where 64 bits do not hold the result.
namespace tonari::mpi {

[[noreturn, gnu::cold]] inline void refuse_width() {
  throw Failure(
      MPI_ERR_VALUE_TOO_LARGE,
      "the size of the datatype, a displacement or a bound is 2^63 bytes or more: use smaller counts, strides "
      "or displacements");
}
inline MPI_Count sum(MPI_Count a, MPI_Count b) {
  MPI_Count result;
  if (__builtin_add_overflow(a, b, &result)) refuse_width();
  return result;
}
inline MPI_Count difference(MPI_Count a, MPI_Count b) {
  MPI_Count result;
  if (__builtin_sub_overflow(a, b, &result)) refuse_width();
  return result;
}
inline MPI_Count product(MPI_Count a, MPI_Count b) {
  MPI_Count result;
  if (__builtin_mul_overflow(a, b, &result)) refuse_width();
  return result;
}
/// The bytes of data of `count` elements of `size` bytes.
inline std::size_t data_bytes(MPI_Count count, std::size_t size) {
  return static_cast<std::size_t>(product(count, static_cast<MPI_Count>(size)));
}

}  // namespace tonari::mpi
