#pragma once

#include <cstdint>
#include <string>

namespace tonari::mpi {

/// Says what a handle is that a function did not want: "MPI_COMM_NULL", "MPI_INT, a datatype". `handle` is a number of
/// the standard's table, or an address whose first word can be read.
std::string describe_handle(std::uintptr_t handle);

}  // namespace tonari::mpi
