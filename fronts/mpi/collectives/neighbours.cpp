#include "functions.hpp"
#include "mpi/collectives/arguments.hpp"
#include "mpi/collectives/perform.hpp"

#include <functional>

// Collectives with the neighbours of a rank in a virtual topology. Block i of a buffer belongs to neighbour i.
namespace tonari::mpi {

using message::Part;
using message::Parts;
using message::Schedule;

namespace {

const Topology& topology_of(const Comm& comm) {
  if (comm.topology != nullptr) return *comm.topology;
  throw Failure(
      MPI_ERR_TOPOLOGY,
      "comm has no virtual topology: make one with MPI_Cart_create, MPI_Graph_create or MPI_Dist_graph_create");
}

int sources_of(const Comm& comm) { return static_cast<int>(topology_of(comm).sources.size()); }
int destinations_of(const Comm& comm) { return static_cast<int>(topology_of(comm).destinations.size()); }

// Two ranks may be neighbours more than once. Then their messages match in order. A message that is sent in the
// positive direction of a dimension is received from the negative direction. Each rank receives from the negative
// direction first, so it sends in the positive direction first.
int position_to_send(const Topology& topology, int position) noexcept {
  return topology.kind == Topology::Kind::cartesian ? position ^ 1 : position;
}

// sent(i) goes to destination i; received(i) comes from source i. All messages are in one round: ranks with few
// neighbours may not run ahead of the others.
void exchange(Comm& comm, const How& how, const Parts& sent, const Parts& received) {
  const Topology& topology = topology_of(comm);
  perform(comm, how, job::Wait::all_to_all, [&](Schedule& schedule) {
    for (int i = 0; i < sources_of(comm); ++i) {
      const int source = topology.sources[static_cast<std::size_t>(i)];
      if (source != MPI_PROC_NULL) schedule.receive(received(i), source);
    }
    for (int i = 0; i < destinations_of(comm); ++i) {
      const int position = position_to_send(topology, i);
      const int destination = topology.destinations[static_cast<std::size_t>(position)];
      if (destination != MPI_PROC_NULL) schedule.send(sent(position), destination);
    }
  });
}

}  // namespace

void neighbor_allgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                        MPI_Count recvcount, Datatype* recvtype, Comm& comm, const How& how) {
  (void)topology_of(comm);
  const Part mine = Blocks(sendbuf, sendcount, sendtype, names_of_sent).whole();
  const Blocks received(recvbuf, recvcount, recvtype, names_of_received);
  exchange(
      comm, how, [&](int) { return mine; }, std::cref(received));
}

void neighbor_allgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, Counts recvcounts,
                         Counts displs, Datatype* recvtype, Comm& comm, const How& how) {
  const int sources = sources_of(comm);
  const Part mine = Blocks(sendbuf, sendcount, sendtype, names_of_sent).whole();
  const CountedBlocks received(recvbuf, recvcounts, displs, recvtype, sources, names_of_received);
  exchange(
      comm, how, [&](int) { return mine; }, std::cref(received));
}

void neighbor_alltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                       Datatype* recvtype, Comm& comm, const How& how) {
  (void)topology_of(comm);
  const Blocks sent(sendbuf, sendcount, sendtype, names_of_sent);
  const Blocks received(recvbuf, recvcount, recvtype, names_of_received);
  exchange(comm, how, std::cref(sent), std::cref(received));
}

void neighbor_alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, Datatype* sendtype, void* recvbuf,
                        Counts recvcounts, Counts rdispls, Datatype* recvtype, Comm& comm, const How& how) {
  const CountedBlocks sent(sendbuf, sendcounts, sdispls, sendtype, destinations_of(comm), names_of_sent);
  const CountedBlocks received(recvbuf, recvcounts, rdispls, recvtype, sources_of(comm), names_of_received);
  exchange(comm, how, std::cref(sent), std::cref(received));
}

void neighbor_alltoallw(const void* sendbuf, Counts sendcounts, const MPI_Aint* sdispls, const MPI_Datatype* sendtypes,
                        void* recvbuf, Counts recvcounts, const MPI_Aint* rdispls, const MPI_Datatype* recvtypes,
                        Comm& comm, const How& how) {
  const TypedBlocks sent(sendbuf, sendcounts, Counts(sdispls), sendtypes, destinations_of(comm), names_of_sent);
  const TypedBlocks received(recvbuf, recvcounts, Counts(rdispls), recvtypes, sources_of(comm), names_of_received);
  exchange(comm, how, std::cref(sent), std::cref(received));
}

}  // namespace tonari::mpi
