#pragma once

#include "message/part.hpp"
#include "mpi/comm.hpp"
#include "mpi/counts.hpp"
#include "mpi/datatype.hpp"

#include <cstddef>

// The arguments of collectives, checked. All functions throw Failure.
namespace tonari::mpi {

/// Names of a buffer's arguments, for errors.
struct Names {
  const char* buffer;
  const char* count;
  const char* type;
};
inline constexpr Names names_of_sent{"sendbuf", "sendcount", "sendtype"};
inline constexpr Names names_of_received{"recvbuf", "recvcount", "recvtype"};
inline constexpr Names names_of_one{"buffer", "count", "datatype"};

/// Returns whether the program passed MPI_IN_PLACE.
inline bool is_in_place(const void* buffer) noexcept { return buffer == MPI_IN_PLACE; }

void check_root(const Comm& comm, int root);
/// Returns the root of a collective on an inter-communicator, as message/inter_collectives.hpp names it.
int inter_root(const Comm& comm, int root);
/// Refuses inter-communicators.
void check_intra(const Comm& comm);
/// Checks a type that is significant on this rank.
Datatype& check_type(Datatype* type, const char* name);
void check_count(MPI_Count count, const char* name, int rank = -1);
/// Refuses MPI_IN_PLACE, and a null pointer to data of a predefined type. Displacements of derived types may be
/// addresses.
void check_buffer(const void* buffer, MPI_Count count, const Datatype& type, const char* name);

/// A buffer argument with one count: the data of one rank, or of each rank one after the other.
class Blocks {
 public:
  /// Checks the arguments.
  Blocks(const void* buffer, MPI_Count count, Datatype* type, const Names& names);
  /// The data of one rank.
  [[nodiscard]] message::Part whole() const;
  [[nodiscard]] message::Part operator()(int rank) const;

 private:
  const std::byte* buffer_;
  MPI_Count count_;
  const Datatype& type_;
};

/// A buffer argument with a count and a displacement for each rank, in elements of its type.
class CountedBlocks {
 public:
  /// Checks the counts of `ranks` ranks.
  CountedBlocks(const void* buffer, Counts counts, Counts displacements, Datatype* type, int ranks, const Names& names);
  [[nodiscard]] message::Part operator()(int rank) const;

 private:
  const std::byte* buffer_;
  Counts counts_;
  Counts displacements_;
  const Datatype& type_;
};

/// A buffer argument with a count, a displacement in bytes and a type for each rank.
class TypedBlocks {
 public:
  TypedBlocks(const void* buffer, Counts counts, Counts displacements, const MPI_Datatype* types, int ranks,
              const Names& names);
  [[nodiscard]] message::Part operator()(int rank) const;

 private:
  const std::byte* buffer_;
  Counts counts_;
  Counts displacements_;
  const MPI_Datatype* types_;
};

}  // namespace tonari::mpi
