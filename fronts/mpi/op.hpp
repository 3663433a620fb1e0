#pragma once

#include "mpi/datatype.hpp"
#include "mpi/object.hpp"

#include <tonari/message.hpp>

#include <array>
#include <cstdint>

namespace tonari::mpi {

using Op = MPI_ABI_Op;

/// A program's operation: with counts of 32 or of 64 bits.
struct UserFunction {
  explicit UserFunction(MPI_User_function* narrow_function) noexcept : narrow(narrow_function) {}
  explicit UserFunction(MPI_User_function_c* wide_function) noexcept : wide(wide_function) {}
  UserFunction() = default;
  [[nodiscard]] bool is_null() const noexcept { return narrow == nullptr && wide == nullptr; }
  MPI_User_function* narrow = nullptr;
  MPI_User_function_c* wide = nullptr;
};

/// For each kind of element: inout[i] = in[i] op inout[i]. Null where the operation is not defined.
using Folds = std::array<detail::Fold, basic_count>;

}  // namespace tonari::mpi

/// An operation of reductions.
struct MPI_ABI_Op : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x6f706572;
  MPI_ABI_Op() noexcept : Object(word) {}
  [[nodiscard]] bool is_predefined() const noexcept { return name != nullptr; }

  bool commutes = true;
  tonari::mpi::UserFunction function;         ///< The program's; null for a predefined operation.
  const tonari::mpi::Folds* folds = nullptr;  ///< Null if it is the program's, or not for reductions.
  const char* name = nullptr;                 ///< Null if it is the program's.
};
