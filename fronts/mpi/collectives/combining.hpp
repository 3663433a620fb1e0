#pragma once

#include "mpi/datatype.hpp"
#include "mpi/op.hpp"

#include <tonari/message.hpp>

#include <cstddef>

namespace tonari::mpi {

/// An operation of a program, and the places of its operands.
struct UserCall {
  UserFunction function;
  Ref<Datatype> type;      ///< Keeps it as long as the call may be made.
  MPI_Datatype handle;     ///< As the program knows the type.
  std::ptrdiff_t address;  ///< Where the first element is, relative to the first byte of the operands.
  std::size_t elements;    ///< How many elements of the type are one element of the runtime's reduction.

  /// A detail::Fold whose `operation` is a UserCall: inout[i] = in[i] op inout[i].
  static void fold(void* inout, const void* in, std::size_t count, const void* operation);
};

/// How a reduction combines `count` elements of a type.
///
/// The runtime combines elements that follow each other. If a program's operation combines a type with gaps, the
/// operands are copied to *staged* memory. There they have the same places as in a buffer of the program; gaps are
/// sent, too. If elements are inside of each other, all of them are one element for the runtime.
class Combining {
 public:
  /// Throws Failure if the operation cannot combine the type.
  Combining(Op& op, Datatype& type, MPI_Count count);

  /// Returns what the runtime needs. Its `operation` is part of this object.
  [[nodiscard]] detail::Reduction reduction() const noexcept;
  /// True if `operation` is not null: then this object must live until a started reduction is complete.
  [[nodiscard]] bool is_by_user() const noexcept { return fold_ == nullptr; }
  [[nodiscard]] bool is_staged() const noexcept { return is_staged_; }
  /// True if staged elements are inside of each other.
  [[nodiscard]] bool is_nested() const noexcept { return is_staged_ && call_.elements != 1; }
  /// Returns the size of all operands of a rank.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Returns the address of the first element in staged memory.
  [[nodiscard]] std::byte* address_in(std::byte* staged) const noexcept { return staged + call_.address; }

 private:
  void stage(const Datatype& type, MPI_Count count);

  detail::Fold fold_ = nullptr;  // null: `call_`
  std::size_t element_bytes_;
  std::size_t bytes_ = 0;
  bool commutes_;
  bool is_staged_ = false;
  UserCall call_{};
};

}  // namespace tonari::mpi
