#pragma once

#include "mpi/datatype.hpp"

#include <cstddef>

// The portable format "external32" (MPI 5.0, section 14.5.2): big-endian, with the sizes of its table, without gaps.
namespace tonari::mpi {

/// Converts the data of `count` elements in a buffer to external32, and back. The caller has checked that the elements
/// have fewer than 2^63 bytes, and that the array has room. Throws Failure if external32 cannot represent a value.
void to_external(const void* buffer, MPI_Count count, const Datatype& type, std::byte* external);
void from_external(const std::byte* external, void* buffer, MPI_Count count, const Datatype& type);

}  // namespace tonari::mpi
