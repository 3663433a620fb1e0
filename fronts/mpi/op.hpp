#pragma once

#include "mpi/object.hpp"

namespace tonari::mpi {

using Op = MPI_ABI_Op;

/// A program's operation: with counts of 32 or of 64 bits.
struct UserFunction {
  explicit UserFunction(MPI_User_function* narrow_function) noexcept : narrow(narrow_function) {}
  explicit UserFunction(MPI_User_function_c* wide_function) noexcept : wide(wide_function) {}
  UserFunction() = default;
  MPI_User_function* narrow = nullptr;
  MPI_User_function_c* wide = nullptr;
};

}  // namespace tonari::mpi

/// An operation of reductions.
struct MPI_ABI_Op : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x6f706572;
  MPI_ABI_Op() noexcept : Object(word) {}
  bool commutes = true;
  tonari::mpi::UserFunction function;  ///< Of the program; none for a predefined operation.
};
