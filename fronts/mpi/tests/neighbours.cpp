// ranks: 1 2 4 6 9
#include "shapes.hpp"

// Neighbour collectives: on Cartesian grids with and without borders, also so small that a neighbour is this rank or is
// the neighbour on both sides; on graphs; on distributed graphs in which two ranks are neighbours several times.
namespace {

using test::any_separate_shape;
using test::any_shape;
using test::below;
using test::Form;
using test::Layout;
using test::Memory;
using test::private_random;
using test::Shape;
using test::shared_random;

// A message comes from `rank`, where it is the one for its destination number `block`.
struct Peer {
  int rank;
  int block;
};

// A communicator, and what its neighbour collectives must do, as computed from the numbers that all ranks know.
struct Neighbourhood {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<Peer> sources;
  std::vector<int> destinations;

  [[nodiscard]] int in() const { return static_cast<int>(sources.size()); }
  [[nodiscard]] int out() const { return static_cast<int>(destinations.size()); }
};

Neighbourhood make_grid() {
  Neighbourhood grid;
  std::vector<int> extents(static_cast<std::size_t>(1 + below(shared_random, 3)), 0);
  MPI_Dims_create(test::ranks(), static_cast<int>(extents.size()), extents.data());
  std::vector<int> periods;
  for (std::size_t i = 0; i < extents.size(); ++i) periods.push_back(below(shared_random, 2));
  MPI_Cart_create(MPI_COMM_WORLD, static_cast<int>(extents.size()), extents.data(), periods.data(), 0, &grid.comm);
  int stride = test::ranks();
  for (std::size_t i = 0; i < extents.size(); ++i) {
    stride /= extents[i];
    const int mine = test::rank() / stride % extents[i];
    for (const int direction : {-1, 1}) {
      int place = mine + direction;
      if (periods[i] != 0) place = (place + extents[i]) % extents[i];
      const bool is_there = place >= 0 && place < extents[i];
      const int rank = is_there ? test::rank() + (place - mine) * stride : int{MPI_PROC_NULL};
      // It sent this message in the opposite direction.
      grid.sources.push_back({rank, static_cast<int>(2 * i) + (direction < 0 ? 1 : 0)});
      grid.destinations.push_back(rank);
    }
  }
  return grid;
}

// Each rank has any destinations, the same ones several times. The k-th message between two ranks is the k-th there,
// too.
Neighbourhood make_distributed_graph() {
  Neighbourhood graph;
  std::vector<std::vector<int>> destinations(static_cast<std::size_t>(test::ranks()));
  for (auto& each : destinations) {
    for (int i = below(shared_random, 5); i > 0; --i) each.push_back(below(shared_random, test::ranks()));
  }
  const int me = test::rank();
  graph.destinations = destinations[static_cast<std::size_t>(me)];
  std::vector<int> ranks;
  for (int rank = 0; rank < test::ranks(); ++rank) {
    const auto& theirs = destinations[static_cast<std::size_t>(rank)];
    for (int block = 0; block < static_cast<int>(theirs.size()); ++block) {
      if (theirs[static_cast<std::size_t>(block)] != me) continue;
      graph.sources.push_back({rank, block});
      ranks.push_back(rank);
    }
  }
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, graph.in(), ranks.data(), MPI_UNWEIGHTED, graph.out(),
                                 graph.destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph.comm);
  return graph;
}

// A symmetric graph: a ring with the opposite ranks joined.
Neighbourhood make_graph() {
  Neighbourhood graph;
  const int ranks = test::ranks();
  std::vector<int> index;
  std::vector<int> edges;
  const auto neighbours_of = [ranks](int rank) {
    std::vector<int> all;
    for (const int distance : {1, ranks - 1, ranks / 2}) {
      const int other = (rank + distance) % ranks;
      const bool is_new = std::find(all.begin(), all.end(), other) == all.end();
      if (is_new && other != rank && (2 * distance == ranks || distance != ranks / 2 || ranks < 4))
        all.push_back(other);
    }
    return all;
  };
  for (int rank = 0; rank < ranks; ++rank) {
    const auto all = neighbours_of(rank);
    edges.insert(edges.end(), all.begin(), all.end());
    index.push_back(static_cast<int>(edges.size()));
  }
  graph.destinations = neighbours_of(test::rank());
  for (const int rank : graph.destinations) {
    const auto theirs = neighbours_of(rank);
    graph.sources.push_back(
        {rank, static_cast<int>(std::find(theirs.begin(), theirs.end(), test::rank()) - theirs.begin())});
  }
  MPI_Graph_create(MPI_COMM_WORLD, ranks, index.data(), edges.data(), 0, &graph.comm);
  return graph;
}

struct Turn {
  unsigned number;
  Form form;
  int ints;

  // The message that a rank sends to its destination number `block`.
  [[nodiscard]] std::vector<int> data(const Peer& from, int count) const {
    return test::message(number, from.rank, from.block, count);
  }
  // Its size where sizes differ.
  [[nodiscard]] int size(const Peer& from) const {
    return 4 * static_cast<int>(
                   (number * 31 + static_cast<unsigned>(from.rank) * 7 + static_cast<unsigned>(from.block) * 3) % 11) +
           (from.rank % 2 == 0 ? 0 : ints);
  }
};

void nothing() {}

void check(const Memory& memory, const char* what, const Turn& turn) {
  if (!memory.is_as_expected()) {
    test::fail(__FILE__, __LINE__,
               std::string(what) + ", turn " + std::to_string(turn.number) + ", form " +
                   std::to_string(static_cast<int>(turn.form)));
  }
}

void allgather(const Neighbourhood& all, const Turn& turn) {
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_separate_shape();
  const int count = turn.ints / shape.size();
  Memory sent(sent_shape, 0, turn.ints / sent_shape.size());
  sent.set(0, turn.data({test::rank(), 0}, turn.ints));
  Memory received(shape, 0, count * all.in());
  for (int i = 0; i < all.in(); ++i) {
    const int rank = all.sources[static_cast<std::size_t>(i)].rank;
    if (rank != MPI_PROC_NULL) received.expect(i * count, turn.data({rank, 0}, turn.ints));
  }
  COLLECTIVE(turn.form, nothing, Neighbor_allgather, Ineighbor_allgather, sent.address(), turn.ints / sent_shape.size(),
             sent_shape.type, received.address(), count, shape.type, all.comm);
  check(received, "neighbor_allgather", turn);
}

void allgatherv(const Neighbourhood& all, const Turn& turn) {
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  const int mine = turn.size({test::rank(), 0});
  Memory sent(sent_shape, 0, mine / sent_shape.size());
  sent.set(0, turn.data({test::rank(), 0}, mine));
  std::vector<int> sizes;
  for (const Peer& source : all.sources)
    sizes.push_back(source.rank == MPI_PROC_NULL ? 8 : turn.size({source.rank, 0}));
  const Layout layout(sizes, shape, private_random);
  Memory received(shape, 0, layout.end);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int rank = all.sources[i].rank;
    if (rank != MPI_PROC_NULL) received.expect(layout.displacements[i], turn.data({rank, 0}, sizes[i]));
  }
  COLLECTIVE(turn.form, nothing, Neighbor_allgatherv, Ineighbor_allgatherv, sent.address(), mine / sent_shape.size(),
             sent_shape.type, received.address(), layout.counts.data(), layout.displacements.data(), shape.type,
             all.comm);
  check(received, "neighbor_allgatherv", turn);
}

void alltoall(const Neighbourhood& all, const Turn& turn) {
  const Shape& sent_shape = any_separate_shape();
  const Shape& shape = any_separate_shape();
  const int sent_count = turn.ints / sent_shape.size();
  const int count = turn.ints / shape.size();
  Memory sent(sent_shape, 0, sent_count * all.out());
  for (int i = 0; i < all.out(); ++i) sent.set(i * sent_count, turn.data({test::rank(), i}, turn.ints));
  Memory received(shape, 0, count * all.in());
  for (int i = 0; i < all.in(); ++i) {
    const Peer& source = all.sources[static_cast<std::size_t>(i)];
    if (source.rank != MPI_PROC_NULL) received.expect(i * count, turn.data(source, turn.ints));
  }
  COLLECTIVE(turn.form, nothing, Neighbor_alltoall, Ineighbor_alltoall, sent.address(), sent_count, sent_shape.type,
             received.address(), count, shape.type, all.comm);
  check(received, "neighbor_alltoall", turn);
}

void alltoallv(const Neighbourhood& all, const Turn& turn) {
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  std::vector<int> sent_sizes;
  for (int i = 0; i < all.out(); ++i) sent_sizes.push_back(turn.size({test::rank(), i}));
  const Layout sent_layout(sent_sizes, sent_shape, private_random);
  Memory sent(sent_shape, 0, sent_layout.end);
  for (std::size_t i = 0; i < sent_sizes.size(); ++i) {
    sent.set(sent_layout.displacements[i], turn.data({test::rank(), static_cast<int>(i)}, sent_sizes[i]));
  }
  std::vector<int> sizes;
  for (const Peer& source : all.sources) sizes.push_back(source.rank == MPI_PROC_NULL ? 8 : turn.size(source));
  const Layout layout(sizes, shape, private_random);
  Memory received(shape, 0, layout.end);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (all.sources[i].rank != MPI_PROC_NULL)
      received.expect(layout.displacements[i], turn.data(all.sources[i], sizes[i]));
  }
  COLLECTIVE(turn.form, nothing, Neighbor_alltoallv, Ineighbor_alltoallv, sent.address(), sent_layout.counts.data(),
             sent_layout.displacements.data(), sent_shape.type, received.address(), layout.counts.data(),
             layout.displacements.data(), shape.type, all.comm);
  check(received, "neighbor_alltoallv", turn);
}

// Each neighbour's data have a type and a buffer of their own; the displacements are addresses.
void alltoallw(const Neighbourhood& all, const Turn& turn) {
  std::vector<Memory> sent;
  std::vector<Memory> received;
  std::vector<int> sent_counts;
  std::vector<int> counts;
  std::vector<MPI_Datatype> sent_types;
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Aint> sent_places;
  std::vector<MPI_Aint> places;
  for (int i = 0; i < all.out(); ++i) {
    const Shape& shape = any_shape();
    const int size = turn.size({test::rank(), i});
    sent.emplace_back(shape, 0, size / shape.size()).set(0, turn.data({test::rank(), i}, size));
    sent_counts.push_back(size / shape.size());
    sent_types.push_back(shape.type);
  }
  for (const Peer& source : all.sources) {
    const Shape& shape = any_shape();
    const int size = source.rank == MPI_PROC_NULL ? 8 : turn.size(source);
    Memory& memory = received.emplace_back(shape, 0, size / shape.size());
    if (source.rank != MPI_PROC_NULL) memory.expect(0, turn.data(source, size));
    counts.push_back(size / shape.size());
    types.push_back(shape.type);
  }
  for (Memory& memory : sent) sent_places.push_back(reinterpret_cast<MPI_Aint>(memory.address()));
  for (Memory& memory : received) places.push_back(reinterpret_cast<MPI_Aint>(memory.address()));
  COLLECTIVE(turn.form, nothing, Neighbor_alltoallw, Ineighbor_alltoallw, MPI_BOTTOM, sent_counts.data(),
             sent_places.data(), sent_types.data(), MPI_BOTTOM, counts.data(), places.data(), types.data(), all.comm);
  for (const Memory& memory : received) check(memory, "neighbor_alltoallw", turn);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  test::seed_choices();
  test::make_shapes();
  for (unsigned round = 0; round < 12; ++round) {
    Neighbourhood all = round % 3 == 0 ? make_grid() : round % 3 == 1 ? make_distributed_graph() : make_graph();
    for (unsigned turn = 0; turn < 10; ++turn) {
      const int ints = 4 * below(shared_random, below(shared_random, 8) == 0 ? 7000 : 20);
      for (auto* const collective : {allgather, allgatherv, alltoall, alltoallv, alltoallw}) {
        collective(all, {round * 10 + turn, static_cast<Form>(below(shared_random, 3)), ints});
      }
    }
    MPI_Comm_free(&all.comm);
  }
  test::free_shapes();
  MPI_Finalize();
}
