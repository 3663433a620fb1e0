#pragma once

#include "mpi/collectives/combining.hpp"
#include "mpi/collectives/how.hpp"
#include "mpi/comm.hpp"
#include "mpi/counts.hpp"
#include "mpi/datatype.hpp"
#include "mpi/op.hpp"

#include <cstddef>
#include <span>

// The collectives on inter-communicators. Arguments are as in the functions of the same name without `inter`. They
// check what is significant on this rank, and throw Failure.
namespace tonari::mpi {

void inter_barrier(Comm& comm, const How& how);
void inter_bcast(void* buffer, MPI_Count count, Datatype* datatype, int root, Comm& comm, const How& how);
void inter_gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                  Datatype* recvtype, int root, Comm& comm, const How& how);
void inter_gatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, Counts recvcounts,
                   Counts displs, Datatype* recvtype, int root, Comm& comm, const How& how);
void inter_scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                   Datatype* recvtype, int root, Comm& comm, const How& how);
void inter_scatterv(const void* sendbuf, Counts sendcounts, Counts displs, Datatype* sendtype, void* recvbuf,
                    MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, const How& how);
/// All-gathers and all-to-alls, with checked arguments.
void inter_exchange(const message::Parts& sent, const message::Parts& received, Comm& comm, const How& how);

void inter_reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype* datatype, Op& op, int root, Comm& comm,
                  const How& how);
void inter_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
                     const How& how);
/// `elements`: by rank of this side, the length of its part of the result.
void inter_reduce_scatter(const void* sendbuf, void* recvbuf, std::span<const std::size_t> elements, Datatype& datatype,
                          Op& op, Comm& comm, const How& how);

}  // namespace tonari::mpi
