#include "functions.hpp"
#include "mpi/datatypes/checked.hpp"
#include "mpi/datatypes/external32.hpp"

#include <fmt/format.h>

#include <string_view>

// Packing into a format that the program names. There is one.
namespace tonari::mpi {

namespace {

void need_known(const char* datarep) {
  if (std::string_view(datarep) == "external32") return;
  throw Failure(MPI_ERR_ARG, fmt::format("datarep is \"{}\": it must be \"external32\"", datarep));
}

// Returns the bytes in external32, after it has checked that they lie within a packed buffer.
std::size_t external_bytes_at(const Datatype& type, MPI_Count count, MPI_Count position, MPI_Count size,
                              const char* size_name) {
  (void)data_bytes(count, type.size);  // refuses too many
  const std::size_t bytes = data_bytes(count, type.signature.external_bytes());
  if (position < 0) throw Failure(MPI_ERR_ARG, fmt::format("position is {}: it must not be negative", position));
  if (position <= size && bytes <= static_cast<std::size_t>(size - position)) return bytes;
  throw Failure(MPI_ERR_TRUNCATE, fmt::format("{} bytes from position {} on do not fit into {}, {} bytes: use the size "
                                              "that MPI_Pack_external_size returns",
                                              bytes, position, size_name, size));
}

}  // namespace

void pack_external_size(const char* datarep, MPI_Count incount, Datatype& datatype, MPI_Count* size) {
  need_known(datarep);
  *size = static_cast<MPI_Count>(data_bytes(incount, datatype.signature.external_bytes()));
}

void pack_external(const char* datarep, const void* inbuf, MPI_Count incount, Datatype& datatype, void* outbuf,
                   MPI_Count outsize, MPI_Count* position) {
  need_known(datarep);
  const std::size_t bytes = external_bytes_at(datatype, incount, *position, outsize, "outsize");
  if (bytes == 0) return;
  to_external(inbuf, incount, datatype, static_cast<std::byte*>(outbuf) + *position);
  *position += static_cast<MPI_Count>(bytes);
}

void unpack_external(const char* datarep, const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                     MPI_Count outcount, Datatype& datatype) {
  need_known(datarep);
  const std::size_t bytes = external_bytes_at(datatype, outcount, *position, insize, "insize");
  if (bytes == 0) return;
  from_external(static_cast<const std::byte*>(inbuf) + *position, outbuf, outcount, datatype);
  *position += static_cast<MPI_Count>(bytes);
}

}  // namespace tonari::mpi
