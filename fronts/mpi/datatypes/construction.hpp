#pragma once

#include "mpi/counts.hpp"
#include "mpi/datatype.hpp"

#include <cstdint>
#include <vector>

namespace tonari::mpi {

/// How a datatype was made: the arguments of the constructor, for MPI_Type_get_envelope and MPI_Type_get_contents.
///
/// Owns:    copies of the arguments, and references to the types among them.
/// Threads: immutable once the type is made, so any.
class Construction {
 public:
  enum class Role : std::uint8_t {
    integer,  ///< An int in both forms of the constructor.
    count,    ///< An int; a large count of the twin with large counts.
    address,  ///< An MPI_Aint; a large count of the twin.
  };
  /// The numbers of each kind of arguments that MPI_Type_get_envelope returns.
  struct Envelope {
    MPI_Count integers = 0;
    MPI_Count addresses = 0;
    MPI_Count counts = 0;
    MPI_Count types = 0;
  };
  /// Where MPI_Type_get_contents writes them. An array of which nothing is written may be null.
  struct Contents {
    int* integers = nullptr;
    MPI_Aint* addresses = nullptr;
    MPI_Count* counts = nullptr;
    MPI_Datatype* types = nullptr;
  };

  /// `is_large`: by a constructor with large counts.
  Construction(int combiner, bool is_large) : combiner_(combiner), is_large_(is_large) {}

  /// Add arguments in the order of the constructor's list.
  Construction& add(Role role, MPI_Count value);
  Construction& add(Role role, Counts values, MPI_Count count);
  Construction& add(Role role, const MPI_Aint* values, MPI_Count count);
  Construction& add(Datatype& type);
  void reserve_types(MPI_Count count) { types_.reserve(static_cast<std::size_t>(count)); }

  [[nodiscard]] int combiner() const noexcept { return combiner_; }
  /// True if the forms without large counts cannot tell the arguments.
  [[nodiscard]] bool needs_large_counts() const noexcept;
  /// `large`: of the form with large counts. A type that was made without them has none there either.
  [[nodiscard]] Envelope envelope(bool large) const noexcept;
  /// Writes as many arguments as envelope() says. The program owns the handles of derived types.
  void write(bool large, Contents to) const;

 private:
  struct Segment {
    Role role;
    std::size_t count;
  };
  [[nodiscard]] Role shown_role(Role role, bool large) const noexcept;

  int combiner_;
  bool is_large_;
  std::vector<MPI_Count> values_;
  std::vector<Segment> segments_;  // of values_
  std::vector<Ref<Datatype>> types_;
};

}  // namespace tonari::mpi
