#pragma once

#include "mpi/failure.hpp"
#include "mpi/object.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tonari::mpi {

/// Says what a handle is that a function did not want: "MPI_COMM_NULL", "MPI_INT, a datatype". `handle` is a number of
/// the standard's table, or an address whose first word can be read. `how_ended`: what ends such objects.
std::string describe_handle(std::uintptr_t handle, std::string_view how_ended = "freed");

/// Says that `argument` must be `what`, such as "communicator", and what it is.
std::string wrong_handle_text(std::string_view argument, std::string_view what, std::uintptr_t handle);

/// Throws the Failure of a wrong handle.
template <class Handle>
[[noreturn]] void fail_handle(int code, std::string_view argument, std::string_view what, Handle handle) {
  throw Failure(code, wrong_handle_text(argument, what, number_of(handle)));
}

}  // namespace tonari::mpi
