#include "functions.hpp"
#include "message/creation.hpp"
#include "mpi/communicators/new_comm.hpp"
#include "mpi/environment/info_env.hpp"
#include "mpi/topologies/with_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

// Distributed graphs: a rank knows its own edges.
namespace tonari::mpi {

namespace {

using Kind = Topology::Kind;

bool has_weights(const int* weights) noexcept { return weights != MPI_UNWEIGHTED; }

void check_rank(const Comm& comm, const char* array, int index, int rank) {
  if (rank >= 0 && rank < comm.size()) return;
  throw Failure(MPI_ERR_RANK,
                fmt::format("{}[{}] is {}: the ranks of comm are 0 to {}", array, index, rank, comm.size() - 1));
}

void check_number(const char* argument, int number) {
  if (number < 0) throw Failure(MPI_ERR_ARG, fmt::format("{} is {}: it must not be negative", argument, number));
}

void add(const Comm& comm, const char* array, int count, const int* ranks, const int* weights, std::vector<int>& to,
         std::vector<int>& to_weights) {
  for (int i = 0; i < count; ++i) {
    check_rank(comm, array, i, ranks[i]);
    to.push_back(ranks[i]);
    if (!has_weights(weights)) continue;
    check_number("a weight", weights[i]);
    to_weights.push_back(weights[i]);
  }
}

MPI_Comm make(Comm& comm, Topology graph, const Info* info) {
  if (comm.is_inter) throw Failure(MPI_ERR_COMM, "an inter-communicator cannot have a topology");
  Ref<Comm> made = new_comm(comm, message::duplicate(*comm.context));
  made->topology = std::make_unique<Topology>(std::move(graph));
  if (info != nullptr) made->hints = info->hints;
  return made.take();
}

// An edge, as it is told to the ranks at its ends.
struct Edge {
  int source;
  int destination;
  int weight;
};

// Tells each edge to its source and to its destination. Returns the edges that begin here, and the edges that end here.
std::array<std::vector<Edge>, 2> tell_ends(Comm& comm, const std::vector<Edge>& edges) {
  const auto size = static_cast<std::size_t>(comm.size());
  Communicator ranks = message::Communicators::borrow(*comm.context);
  std::array<std::vector<Edge>, 2> result;
  for (const bool by_source : {true, false}) {
    const auto to = [&](const Edge& edge) {
      return static_cast<std::size_t>(by_source ? edge.source : edge.destination);
    };
    std::vector<std::size_t> sent(size);
    std::vector<std::size_t> received(size);
    for (const Edge& edge : edges) ++sent[to(edge)];
    std::vector<Edge> sorted = edges;
    std::ranges::stable_sort(sorted, {}, to);
    mpi::check(ranks.all_to_all(sent, received));
    std::size_t count = 0;
    for (const std::size_t each : received) count += each;
    std::vector<Edge>& mine = result[by_source ? 0 : 1];
    mine.resize(count);
    mpi::check(ranks.all_to_all_v(sorted, sent, mine, received));
  }
  return result;
}

}  // namespace

void dist_graph_create_adjacent(Comm& comm_old, int indegree, const int* sources, const int* sourceweights,
                                int outdegree, const int* destinations, const int* destweights, Info* info, int,
                                MPI_Comm* comm_dist_graph) {
  check_number("indegree", indegree);
  check_number("outdegree", outdegree);
  Topology graph{.kind = Kind::distributed_graph};
  graph.is_weighted = has_weights(sourceweights) && has_weights(destweights);
  add(comm_old, "sources", indegree, sources, sourceweights, graph.sources, graph.source_weights);
  add(comm_old, "destinations", outdegree, destinations, destweights, graph.destinations, graph.destination_weights);
  *comm_dist_graph = make(comm_old, std::move(graph), info);
}

void dist_graph_create(Comm& comm_old, int n, const int* sources, const int* degrees, const int* destinations,
                       const int* weights, Info* info, int, MPI_Comm* comm_dist_graph) {
  check_number("n", n);
  if (comm_old.is_inter) throw Failure(MPI_ERR_COMM, "an inter-communicator cannot have a topology");
  std::vector<Edge> edges;
  for (int i = 0, at = 0; i < n; ++i) {
    check_rank(comm_old, "sources", i, sources[i]);
    check_number("a degree", degrees[i]);
    for (const int end = at + degrees[i]; at < end; ++at) {
      check_rank(comm_old, "destinations", at, destinations[at]);
      edges.push_back({sources[i], destinations[at], has_weights(weights) ? weights[at] : 0});
    }
  }
  Topology graph{.kind = Kind::distributed_graph};
  graph.is_weighted = has_weights(weights);
  const auto [begin_here, end_here] = tell_ends(comm_old, edges);
  for (const Edge& edge : begin_here) {
    graph.destinations.push_back(edge.destination);
    if (graph.is_weighted) graph.destination_weights.push_back(edge.weight);
  }
  for (const Edge& edge : end_here) {
    graph.sources.push_back(edge.source);
    if (graph.is_weighted) graph.source_weights.push_back(edge.weight);
  }
  *comm_dist_graph = make(comm_old, std::move(graph), info);
}

void dist_graph_neighbors_count(Comm& comm, int* indegree, int* outdegree, int* weighted) {
  const Topology& graph = topology_of(comm, Kind::distributed_graph);
  *indegree = static_cast<int>(graph.sources.size());
  *outdegree = static_cast<int>(graph.destinations.size());
  *weighted = graph.is_weighted ? 1 : 0;
}

void dist_graph_neighbors(Comm& comm, int maxindegree, int* sources, int* sourceweights, int maxoutdegree,
                          int* destinations, int* destweights) {
  const Topology& graph = topology_of(comm, Kind::distributed_graph);
  const auto give = [](const std::vector<int>& from, int room, int* to) {
    if (!has_weights(to)) return;
    std::copy_n(from.begin(), std::min(from.size(), static_cast<std::size_t>(std::max(room, 0))), to);
  };
  give(graph.sources, maxindegree, sources);
  give(graph.destinations, maxoutdegree, destinations);
  if (!graph.is_weighted) return;
  give(graph.source_weights, maxindegree, sourceweights);
  give(graph.destination_weights, maxoutdegree, destweights);
}

}  // namespace tonari::mpi
