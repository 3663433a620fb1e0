#pragma once

#include "mpi/datatypes/checked.hpp"
#include "mpi/datatypes/construction.hpp"

namespace tonari::mpi {

/// The bounds of a type map, which grow as elements are added to it (MPI 5.0, section 5.1.7). Bounds that the program
/// has set hide the others.
class Bounds {
 public:
  /// Adds elements of a type. Their displacements are in [first, last], and both ends are in use.
  void add(const TypeMap& type, MPI_Count first, MPI_Count last);
  /// Adds `count` elements that follow each other from `displacement` on.
  void add_block(const TypeMap& type, MPI_Count displacement, MPI_Count count);

  [[nodiscard]] MPI_Count lower() const noexcept { return lower_; }
  [[nodiscard]] MPI_Count upper() const noexcept { return upper_; }
  [[nodiscard]] bool are_set() const noexcept { return are_set_; }

 private:
  MPI_Count lower_ = 0;
  MPI_Count upper_ = 0;
  bool is_empty_ = true;
  bool are_set_ = false;
};

/// Returns the map of a type that has `elements` elements of one type, without a layout and bounds.
TypeMap map_of(const Datatype& old, MPI_Count elements);

/// Sets lower bound and extent.
void set_bounds(TypeMap& map, const Bounds& bounds);

/// Returns the handle of a new datatype. Finds out whether it is plain.
MPI_Datatype make_type(TypeMap map, Construction construction);

/// Returns a copy of a derived type, with a reference for the caller: without its name and attributes.
Datatype* copy_of(const Datatype& type);

/// Throws Failure if a type is one that this platform has not.
void refuse_absent(const Datatype& type, const char* argument);

}  // namespace tonari::mpi
