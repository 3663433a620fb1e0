#pragma once

#include "message/schedule.hpp"
#include "mpi/comm.hpp"
#include "mpi/datatype.hpp"

#include <cstddef>
#include <span>

namespace tonari::mpi {

/// Elements that lie inside of each other, of which each rank gets its part.
struct NestedResult {
  const std::byte* combined;              ///< Address of the first element on rank 0.
  void* recvbuf;                          ///< Where this rank's part goes.
  std::span<const std::size_t> elements;  ///< By rank: length of its part.
  const Datatype& type;
};

/// Records that rank 0 sends each rank its part.
void write_scatter_nested(message::Schedule& schedule, const Comm& comm, const NestedResult& result);

}  // namespace tonari::mpi
