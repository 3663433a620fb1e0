#pragma once

#include "mpi/attributes.hpp"
#include "mpi/object.hpp"

#include <cstddef>
#include <string>

namespace tonari::mpi {
using Datatype = MPI_ABI_Datatype;

/// What the elements of a type are, for reductions and external32. Types that differ only in their name are the same.
enum class Basic : std::uint8_t {
  none,  ///< Derived from several, or not supported.
  byte,  ///< MPI_BYTE and MPI_PACKED.
  character,
  int8,
  int16,
  int32,
  int64,
  int128,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  float80,   ///< long double, in 16 bytes.
  float128,  ///< MPI_REAL16
  complex64,
  complex128,
  complex160,  ///< Of two long doubles.
  logical8,
  logical16,
  logical32,
  logical64,
  float_int,
  double_int,
  long_int,
  two_ints,
  short_int,
  long_double_int,
  two_floats,
  two_doubles,
};

}  // namespace tonari::mpi

/// A datatype.
struct MPI_ABI_Datatype : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x74797065;
  MPI_ABI_Datatype() noexcept : Object(word) {}

  std::size_t size = 0;  ///< Bytes of data of an element. Of an absent type: see is_absent.
  MPI_Count lower = 0;   ///< Lower bound.
  MPI_Count extent = 0;
  /// Elements follow each other without gaps from the buffer's address on: a buffer is one run of bytes.
  bool is_plain = false;
  bool is_committed = false;
  bool is_predefined = false;
  bool is_absent = false;  ///< A predefined type that this platform has not: its size is MPI_UNDEFINED.
  tonari::mpi::Basic basic = tonari::mpi::Basic::none;
  tonari::mpi::Attributes attributes;
  std::string name;
};
