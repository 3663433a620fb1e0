#include "functions.hpp"
#include "mpi/datatypes/derived.hpp"
#include "mpi/status.hpp"

// How many elements a message had.
namespace tonari::mpi {

namespace {

void set_elements(MPI_Status& status, const Datatype& type, MPI_Count count) {
  refuse_absent(type, "datatype");
  if (count < 0) throw Failure(MPI_ERR_COUNT, "count is negative");
  const std::optional<std::size_t> bytes = type.signature.bytes_of(static_cast<std::size_t>(count));
  if (!bytes) throw Failure(MPI_ERR_VALUE_TOO_LARGE, "so many elements have 2^63 bytes or more, or no bytes at all");
  set_bytes(status, static_cast<MPI_Count>(*bytes));
}

}  // namespace

void get_count(const MPI_Status* status, Datatype& datatype, MPI_Count* count) {
  refuse_absent(datatype, "datatype");
  const auto bytes = static_cast<std::size_t>(bytes_of(*status));
  if (datatype.size == 0) {
    *count = bytes == 0 ? 0 : MPI_Count{MPI_UNDEFINED};
    return;
  }
  *count = bytes % datatype.size == 0 ? static_cast<MPI_Count>(bytes / datatype.size) : MPI_Count{MPI_UNDEFINED};
}

void get_elements_x(const MPI_Status* status, Datatype& datatype, MPI_Count* count) {
  refuse_absent(datatype, "datatype");
  const std::optional<std::size_t> elements =
      datatype.signature.elements_in(static_cast<std::size_t>(bytes_of(*status)));
  *count = elements ? static_cast<MPI_Count>(*elements) : MPI_Count{MPI_UNDEFINED};
}
void get_elements(const MPI_Status* status, Datatype& datatype, MPI_Count* count) {
  get_elements_x(status, datatype, count);
}

void status_set_elements_x(MPI_Status* status, Datatype& datatype, MPI_Count count) {
  set_elements(*status, datatype, count);
}
void status_set_elements(MPI_Status* status, Datatype& datatype, MPI_Count count) {
  set_elements(*status, datatype, count);
}

}  // namespace tonari::mpi
