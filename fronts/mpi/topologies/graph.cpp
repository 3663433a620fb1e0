#include "functions.hpp"
#include "mpi/topologies/with_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

// Graph topologies: every rank knows all edges.
namespace tonari::mpi {

namespace {

using Kind = Topology::Kind;

Topology graph_of(int nnodes, const int* index, const int* edges, int ranks_max) {
  if (nnodes < 0 || nnodes > ranks_max) {
    throw Failure(MPI_ERR_ARG, fmt::format("nnodes is {}: comm has {} ranks", nnodes, ranks_max));
  }
  Topology graph{.kind = Kind::graph};
  int before = 0;
  for (int i = 0; i < nnodes; ++i) {
    if (index[i] < before) throw Failure(MPI_ERR_ARG, fmt::format("indx[{}] is {}: it must not fall", i, index[i]));
    before = index[i];
    graph.index.push_back(index[i]);
  }
  for (int i = 0; i < before; ++i) {
    if (edges[i] < 0 || edges[i] >= nnodes) {
      throw Failure(MPI_ERR_ARG, fmt::format("edges[{}] is {}: the nodes are 0 to {}", i, edges[i], nnodes - 1));
    }
    graph.edges.push_back(edges[i]);
  }
  return graph;
}

std::span<const int> neighbours_of(const Topology& graph, int rank) noexcept {
  const auto end = static_cast<std::size_t>(graph.index[static_cast<std::size_t>(rank)]);
  const auto first = rank == 0 ? 0 : static_cast<std::size_t>(graph.index[static_cast<std::size_t>(rank) - 1]);
  return std::span(graph.edges).subspan(first, end - first);
}

std::span<const int> checked_neighbours(const Comm& comm, int rank) {
  const Topology& graph = topology_of(comm, Kind::graph);
  if (rank < 0 || rank >= comm.size()) {
    throw Failure(MPI_ERR_RANK, fmt::format("rank is {}: the ranks of comm are 0 to {}", rank, comm.size() - 1));
  }
  return neighbours_of(graph, rank);
}

// Copies as many as there is room for.
void give(const auto& from, int room, int* to) {
  std::copy_n(from.begin(), std::min(from.size(), static_cast<std::size_t>(std::max(room, 0))), to);
}

}  // namespace

void graph_create(Comm& comm_old, int nnodes, const int* indx, const int* edges, int, MPI_Comm* comm_graph) {
  Topology graph = graph_of(nnodes, indx, edges, comm_old.size());
  Ref<Comm> made = comm_of_first(comm_old, nnodes);
  if (made) {
    const auto mine = neighbours_of(graph, made->rank());
    graph.sources.assign(mine.begin(), mine.end());
    graph.destinations = graph.sources;
    made->topology = std::make_unique<Topology>(std::move(graph));
  }
  *comm_graph = made ? made.take() : MPI_COMM_NULL;
}

void graph_map(Comm& comm, int nnodes, const int* indx, const int* edges, int* newrank) {
  (void)graph_of(nnodes, indx, edges, comm.size());
  *newrank = comm.rank() < nnodes ? comm.rank() : MPI_UNDEFINED;
}

void graphdims_get(Comm& comm, int* nnodes, int* nedges) {
  const Topology& graph = topology_of(comm, Kind::graph);
  *nnodes = static_cast<int>(graph.index.size());
  *nedges = static_cast<int>(graph.edges.size());
}

void graph_get(Comm& comm, int maxindex, int maxedges, int* indx, int* edges) {
  const Topology& graph = topology_of(comm, Kind::graph);
  give(graph.index, maxindex, indx);
  give(graph.edges, maxedges, edges);
}

void graph_neighbors_count(Comm& comm, int rank, int* nneighbors) {
  *nneighbors = static_cast<int>(checked_neighbours(comm, rank).size());
}

void graph_neighbors(Comm& comm, int rank, int maxneighbors, int* neighbors) {
  give(checked_neighbours(comm, rank), maxneighbors, neighbors);
}

}  // namespace tonari::mpi
