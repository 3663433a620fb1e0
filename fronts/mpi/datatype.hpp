#pragma once

#include "message/layout.hpp"
#include "message/layout_cursor.hpp"
#include "mpi/attributes.hpp"
#include "mpi/datatypes/signature.hpp"
#include "mpi/object.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace tonari::mpi {
using Datatype = MPI_ABI_Datatype;

/// The bytes of a datatype's element, relative to the address of a buffer.
struct TypeMap {
  std::size_t size = 0;  ///< Bytes of data of an element, below 2^63.
  MPI_Count lower = 0;   ///< Lower bound.
  MPI_Count extent = 0;
  /// Elements follow each other without gaps from the buffer's address on: a buffer is one run of bytes.
  bool is_plain = false;
  /// The program has set the bounds (MPI_Type_create_resized, _subarray, _darray), of the type or of one that it was
  /// made of. Types that are made of it have no other bounds than such ones.
  bool has_set_bounds = false;
  std::uint8_t alignment = 1;  ///< The largest alignment that a basic element needs.
  Basic basic = Basic::none;   ///< A derived type has one too, if it is derived from one only.
  message::Layout layout;      ///< One element.
  Signature signature;
};

class Construction;

}  // namespace tonari::mpi

/// A datatype. Immutable once made, but for is_committed, the name and the attributes.
struct MPI_ABI_Datatype : tonari::mpi::Object, tonari::mpi::TypeMap {
  static constexpr std::uint32_t word = 0x74797065;
  explicit MPI_ABI_Datatype(tonari::mpi::TypeMap map = {}) noexcept : Object(word), TypeMap(std::move(map)) {}
  MPI_ABI_Datatype(MPI_ABI_Datatype&&) = delete;
  ~MPI_ABI_Datatype();

  bool is_committed = false;
  bool is_predefined = false;  ///< A named type, or one of MPI_Type_create_f90_*. The program cannot free it.
  bool is_absent = false;      ///< A predefined type that this platform has not: its size is MPI_UNDEFINED.
  std::uint16_t number = 0;    ///< The handle of a named type. 0: the handle is the object's address.
  std::shared_ptr<const tonari::mpi::Construction> construction;  ///< Null for a named type.
  tonari::mpi::Attributes attributes;
  std::string name;
};

namespace tonari::mpi {

/// Returns the handle that programs know for a datatype: a number for a named one.
inline MPI_Datatype handle_of(Datatype& type) noexcept {
  return type.number != 0 ? reinterpret_cast<MPI_Datatype>(std::uintptr_t{type.number}) : &type;
}

/// Returns the data bytes of `count` elements in a buffer. Throws std::length_error if there are 2^63 or more. The
/// cursor does not need the type any more. A send only reads the buffer.
inline message::LayoutCursor cursor(const void* buffer, MPI_Count count, const Datatype& type) {
  return {static_cast<std::byte*>(const_cast<void*>(buffer)), type.layout, static_cast<std::size_t>(count),
          type.extent};
}

}  // namespace tonari::mpi
