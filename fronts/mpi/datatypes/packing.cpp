#include "functions.hpp"
#include "mpi/datatypes/checked.hpp"

#include <fmt/format.h>

#include <cstring>

// Packing into the format of this platform: the data bytes in order, nothing else.
namespace tonari::mpi {

namespace {

// Returns the bytes of data, after it has checked that they lie within a packed buffer.
std::size_t bytes_at(const Datatype& type, MPI_Count count, MPI_Count position, MPI_Count size, const char* size_name) {
  const std::size_t bytes = data_bytes(count, type.size);
  if (position < 0) throw Failure(MPI_ERR_ARG, fmt::format("position is {}: it must not be negative", position));
  if (position <= size && bytes <= static_cast<std::size_t>(size - position)) return bytes;
  throw Failure(MPI_ERR_TRUNCATE, fmt::format("{} bytes from position {} on do not fit into {}, {} bytes: use the size "
                                              "that MPI_Pack_size returns",
                                              bytes, position, size_name, size));
}

}  // namespace

void pack_size(MPI_Count incount, Datatype& datatype, Comm& /*comm*/, MPI_Count* size) {
  *size = static_cast<MPI_Count>(data_bytes(incount, datatype.size));
}

void pack(const void* inbuf, MPI_Count incount, Datatype& datatype, void* outbuf, MPI_Count outsize,
          MPI_Count* position, Comm& /*comm*/) {
  const std::size_t bytes = bytes_at(datatype, incount, *position, outsize, "outsize");
  if (bytes == 0) return;
  auto* const to = static_cast<std::byte*>(outbuf) + *position;
  if (datatype.is_plain) {
    std::memcpy(to, inbuf, bytes);
  } else {
    cursor(inbuf, incount, datatype).pack(0, to, bytes);
  }
  *position += static_cast<MPI_Count>(bytes);
}

void unpack(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf, MPI_Count outcount,
            Datatype& datatype, Comm& /*comm*/) {
  const std::size_t bytes = bytes_at(datatype, outcount, *position, insize, "insize");
  if (bytes == 0) return;
  const auto* const from = static_cast<const std::byte*>(inbuf) + *position;
  if (datatype.is_plain) {
    std::memcpy(outbuf, from, bytes);
  } else {
    cursor(outbuf, outcount, datatype).unpack(0, from, bytes);
  }
  *position += static_cast<MPI_Count>(bytes);
}

}  // namespace tonari::mpi
