#include "functions.hpp"
#include "mpi/datatypes/construction.hpp"

#include <fmt/format.h>

#include <limits>

// How a datatype was made.
namespace tonari::mpi {

namespace {

using Contents = Construction::Contents;
using Envelope = Construction::Envelope;

// `large`: asked by a function that knows large counts.
Envelope envelope_of(const Datatype& type, bool large) {
  if (type.construction == nullptr) return {};
  const Envelope envelope = type.construction->envelope(large);
  const bool is_too_long = envelope.integers > std::numeric_limits<int>::max();
  if (!large && (is_too_long || type.construction->needs_large_counts())) {
    throw Failure(MPI_ERR_TYPE,
                  "datatype was made with counts or displacements that an int does not hold: call the function of the "
                  "same name with _c");
  }
  return envelope;
}

int combiner_of(const Datatype& type) noexcept {
  return type.construction == nullptr ? int{MPI_COMBINER_NAMED} : type.construction->combiner();
}

void need_room(const char* argument, MPI_Count room, MPI_Count needed, bool is_array_there) {
  if (room < needed) {
    throw Failure(MPI_ERR_ARG, fmt::format("max_{} is {}: MPI_Type_get_envelope says {}", argument, room, needed));
  }
  if (needed != 0 && !is_array_there) {
    throw Failure(MPI_ERR_ARG, fmt::format("array_of_{} is a null pointer", argument));
  }
}

void write_contents(const Datatype& type, bool large, const Envelope& room, const Contents& to) {
  if (type.construction == nullptr) {
    throw Failure(MPI_ERR_TYPE,
                  fmt::format("datatype is {}, a named type: it was not made by a constructor", type.name));
  }
  const Envelope needed = envelope_of(type, large);
  need_room("integers", room.integers, needed.integers, to.integers != nullptr);
  need_room("addresses", room.addresses, needed.addresses, to.addresses != nullptr);
  if (large) need_room("large_counts", room.counts, needed.counts, to.counts != nullptr);
  need_room("datatypes", room.types, needed.types, to.types != nullptr);
  type.construction->write(large, to);
}

}  // namespace

void type_get_envelope(Datatype& datatype, int* num_integers, int* num_addresses, int* num_datatypes, int* combiner) {
  const Envelope envelope = envelope_of(datatype, false);
  *num_integers = static_cast<int>(envelope.integers);
  *num_addresses = static_cast<int>(envelope.addresses);
  *num_datatypes = static_cast<int>(envelope.types);
  *combiner = combiner_of(datatype);
}

void type_get_envelope_c(Datatype& datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                         MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner) {
  const Envelope envelope = envelope_of(datatype, true);
  *num_integers = envelope.integers;
  *num_addresses = envelope.addresses;
  *num_large_counts = envelope.counts;
  *num_datatypes = envelope.types;
  *combiner = combiner_of(datatype);
}

void type_get_contents(Datatype& datatype, int max_integers, int max_addresses, int max_datatypes,
                       int* array_of_integers, MPI_Aint* array_of_addresses, MPI_Datatype* array_of_datatypes) {
  write_contents(datatype, false, {max_integers, max_addresses, 0, max_datatypes},
                 {array_of_integers, array_of_addresses, nullptr, array_of_datatypes});
}

void type_get_contents_c(Datatype& datatype, MPI_Count max_integers, MPI_Count max_addresses,
                         MPI_Count max_large_counts, MPI_Count max_datatypes, int* array_of_integers,
                         MPI_Aint* array_of_addresses, MPI_Count* array_of_large_counts,
                         MPI_Datatype* array_of_datatypes) {
  write_contents(datatype, true, {max_integers, max_addresses, max_large_counts, max_datatypes},
                 {array_of_integers, array_of_addresses, array_of_large_counts, array_of_datatypes});
}

}  // namespace tonari::mpi
