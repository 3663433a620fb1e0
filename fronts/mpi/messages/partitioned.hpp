#pragma once

#include "mpi/messages/buffer.hpp"
#include "mpi/request.hpp"

#include <cstdint>
#include <vector>

// Messages in partitions, each of which is a message of its own.
//
//   sender                                         receiver
//   Psend_init   plan: first tag, partitions ----> Precv_init: the oldest plan of this sender and tag
//   Start                                          Start: posts a receive per partition of the sender
//   Pready(i)    partition i, tag first + i -----> Parrived(j): all partitions of the sender that touch j have arrived
//
// Both kinds of messages have context ids of their own, so that they meet no message of the program. Plans match in the
// order of MPI_Psend_init and MPI_Precv_init, as the standard says. A sender draws tags that no other of its requests
// has.
namespace tonari::mpi {

struct Plan {
  std::uint32_t first_tag;
  std::uint32_t partitions;
  std::uint64_t partition_bytes;
};

/// The context ids of plans and of partitions.
inline std::uint32_t plans_id(const Comm& comm) noexcept { return comm.context->id() + message::front_id_offset; }
inline std::uint32_t partitions_id(const Comm& comm) noexcept { return plans_id(comm) + 1; }

/// A program's buffer of partitions.
struct Partitions {
  Buffer all;
  int count;
  MPI_Count elements;  ///< Number of elements per partition.

  [[nodiscard]] Buffer part(int index) const { return all.part(index * elements, elements); }
  [[nodiscard]] std::size_t bytes() const noexcept { return all.bytes() / static_cast<std::size_t>(count); }
  /// Throws Failure if there is no such partition.
  void check(int index) const;
};

/// Throws Failure if the number of partitions is not positive, or the buffer is wrong.
Partitions make_partitions(const void* buf, int count, MPI_Count elements, Datatype& type);

/// Throws Failure if the request is of another kind.
Conduct& conduct_of(MPI_Request request, Request::Kind kind, const char* kind_name);

}  // namespace tonari::mpi
