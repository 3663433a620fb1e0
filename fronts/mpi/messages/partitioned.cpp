#include "mpi/messages/partitioned.hpp"

#include <fmt/format.h>

namespace tonari::mpi {

void Partitions::check(int index) const {
  if (index >= 0 && index < count) return;
  throw Failure(MPI_ERR_ARG,
                fmt::format("partition is {}: the partitions of this request are 0 to {}", index, count - 1));
}

Partitions make_partitions(const void* buf, int count, MPI_Count elements, Datatype& type) {
  if (count < 1) throw Failure(MPI_ERR_ARG, fmt::format("partitions is {}: it must be at least 1", count));
  MPI_Count all = 0;
  if (__builtin_mul_overflow(elements, MPI_Count{count}, &all)) fail_length(elements, type.size);
  return {Buffer(buf, all, type), count, elements};
}

Conduct& conduct_of(MPI_Request request, Request::Kind kind, const char* kind_name) {
  Request* const found = find(request);
  if (found == nullptr || found->kind != kind) {
    throw Failure(MPI_ERR_REQUEST, fmt::format("request is no partitioned {}", kind_name));
  }
  return *found->conduct;
}

}  // namespace tonari::mpi
