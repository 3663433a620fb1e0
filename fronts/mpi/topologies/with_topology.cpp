#include "mpi/topologies/with_topology.hpp"

#include "functions.hpp"
#include "mpi/communicators/new_comm.hpp"

#include <fmt/format.h>

namespace tonari::mpi {

namespace {

const char* name_of(Topology::Kind kind) noexcept {
  switch (kind) {
    case Topology::Kind::cartesian: return "Cartesian";
    case Topology::Kind::graph: return "graph";
    case Topology::Kind::distributed_graph: return "distributed graph";
  }
  return "";
}

}  // namespace

const Topology& topology_of(const Comm& comm, Topology::Kind kind) {
  if (comm.topology == nullptr || comm.topology->kind != kind) {
    throw Failure(MPI_ERR_TOPOLOGY, fmt::format("comm has no {} topology", name_of(kind)));
  }
  return *comm.topology;
}

Ref<Comm> comm_of_first(Comm& comm, int ranks) {
  if (comm.is_inter) throw Failure(MPI_ERR_COMM, "an inter-communicator cannot have a topology");
  return new_comm(comm, message::split(*comm.context, comm.rank() < ranks ? 0 : MPI_UNDEFINED, 0));
}

void topo_test(Comm& comm, int* status) {
  *status = MPI_UNDEFINED;
  if (comm.topology == nullptr) return;
  switch (comm.topology->kind) {
    case Topology::Kind::cartesian: *status = MPI_CART; break;
    case Topology::Kind::graph: *status = MPI_GRAPH; break;
    case Topology::Kind::distributed_graph: *status = MPI_DIST_GRAPH; break;
  }
}

}  // namespace tonari::mpi
