#pragma once

#include <vector>

namespace tonari::mpi {

/// The virtual topology of a communicator.
struct Topology {
  enum class Kind { cartesian, graph, distributed_graph };
  Kind kind;

  // Cartesian: the last dimension varies fastest.
  std::vector<int> extents{};
  std::vector<int> periods{};
  std::vector<int> coordinates{};  ///< This rank's.

  // Graph: neighbours of rank i are edges[index[i - 1]] to edges[index[i] - 1], for all ranks.
  std::vector<int> index{};
  std::vector<int> edges{};

  // Neighbours of this rank, in the order of neighbour collectives; MPI_PROC_NULL at a border. For every kind.
  std::vector<int> sources{};
  std::vector<int> destinations{};
  std::vector<int> source_weights{};  ///< Distributed graph with weights; otherwise empty.
  std::vector<int> destination_weights{};
  bool is_weighted = false;
};

}  // namespace tonari::mpi
