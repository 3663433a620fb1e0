#pragma once

#include "job/group.hpp"
#include "mpi/comm.hpp"

// The ranks and tags of programs as the runtime has them.
namespace tonari::mpi {

/// Returns the rank in the job of a rank that sends and receives name.
inline int job_rank_of(const Comm& comm, int rank) noexcept { return job::rank_at(comm.context->peers(), rank); }
/// The same for receives: MPI_ANY_SOURCE has the same number in both.
inline int job_source_of(const Comm& comm, int rank) noexcept { return rank < 0 ? -1 : job_rank_of(comm, rank); }
/// MPI_ANY_TAG is a negative number of its own.
inline int runtime_tag(int tag) noexcept { return tag < 0 ? -1 : tag; }

}  // namespace tonari::mpi
