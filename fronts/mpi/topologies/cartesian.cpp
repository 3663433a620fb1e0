#include "functions.hpp"
#include "message/creation.hpp"
#include "mpi/communicators/new_comm.hpp"
#include "mpi/topologies/with_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

// Cartesian topologies: grids whose last dimension varies fastest.
namespace tonari::mpi {

namespace {

using Kind = Topology::Kind;

int size_of(const Topology& grid) noexcept {
  int size = 1;
  for (const int extent : grid.extents) size *= extent;
  return size;
}

std::vector<int> coordinates_of(const Topology& grid, int rank) {
  std::vector<int> coordinates(grid.extents.size());
  for (std::size_t i = grid.extents.size(); i-- > 0; rank /= grid.extents[i]) coordinates[i] = rank % grid.extents[i];
  return coordinates;
}

// Coordinates outside a periodic dimension wrap around. -1 if one is outside another dimension.
int rank_at(const Topology& grid, const int* coordinates) noexcept {
  int rank = 0;
  for (std::size_t i = 0; i < grid.extents.size(); ++i) {
    const int extent = grid.extents[i];
    int place = coordinates[i];
    if (place < 0 || place >= extent) {
      if (grid.periods[i] == 0) return -1;
      place = (place % extent + extent) % extent;
    }
    rank = rank * extent + place;
  }
  return rank;
}

// The rank `distance` places further in a dimension, or MPI_PROC_NULL behind the border.
int shifted(const Topology& grid, std::size_t dimension, int distance) {
  std::vector<int> place = grid.coordinates;
  const int extent = grid.extents[dimension];
  place[dimension] += grid.periods[dimension] != 0 ? distance % extent : std::clamp(distance, -extent, extent);
  const int rank = rank_at(grid, place.data());
  return rank < 0 ? MPI_PROC_NULL : rank;
}

// In each dimension the neighbour before this rank, then the one behind it.
void find_neighbours(Topology& grid) {
  grid.sources.clear();
  for (std::size_t i = 0; i < grid.extents.size(); ++i) {
    grid.sources.push_back(shifted(grid, i, -1));
    grid.sources.push_back(shifted(grid, i, +1));
  }
  grid.destinations = grid.sources;
}

// Checks the arguments of a grid with at most `ranks_max` ranks.
Topology grid_of(int ndims, const int* dims, const int* periods, int ranks_max) {
  if (ndims < 0) throw Failure(MPI_ERR_DIMS, fmt::format("ndims is {}: it must not be negative", ndims));
  Topology grid{.kind = Kind::cartesian};
  long long ranks = 1;
  bool is_huge = false;
  for (int i = 0; i < ndims; ++i) {
    if (dims[i] < 1) throw Failure(MPI_ERR_DIMS, fmt::format("dims[{}] is {}: it must be at least 1", i, dims[i]));
    is_huge = __builtin_mul_overflow(ranks, dims[i], &ranks) || is_huge;
    grid.extents.push_back(dims[i]);
    grid.periods.push_back(periods[i] != 0 ? 1 : 0);
  }
  if (is_huge || ranks > ranks_max) {
    throw Failure(MPI_ERR_DIMS, fmt::format("dims need {} ranks, but comm has {}",
                                            is_huge ? "2^63 or more" : std::to_string(ranks), ranks_max));
  }
  return grid;
}

void settle(Comm& comm, Topology grid) {
  grid.coordinates = coordinates_of(grid, comm.rank());
  find_neighbours(grid);
  comm.topology = std::make_unique<Topology>(std::move(grid));
}

void check_room(const char* argument, int room, std::size_t needed) {
  if (room >= 0 && static_cast<std::size_t>(room) >= needed) return;
  throw Failure(MPI_ERR_ARG, fmt::format("{} is {}: the topology needs {}", argument, room, needed));
}

}  // namespace

void cart_create(Comm& comm_old, int ndims, const int* dims, const int* periods, int, MPI_Comm* comm_cart) {
  Topology grid = grid_of(ndims, dims, periods, comm_old.size());
  Ref<Comm> made = comm_of_first(comm_old, size_of(grid));
  if (made) settle(*made, std::move(grid));
  *comm_cart = made ? made.take() : MPI_COMM_NULL;
}

void cart_sub(Comm& comm, const int* remain_dims, MPI_Comm* newcomm) {
  const Topology& whole = topology_of(comm, Kind::cartesian);
  Topology part{.kind = Kind::cartesian};
  int color = 0;  // the place in the dimensions that do not remain
  for (std::size_t i = 0; i < whole.extents.size(); ++i) {
    if (remain_dims[i] != 0) {
      part.extents.push_back(whole.extents[i]);
      part.periods.push_back(whole.periods[i]);
    } else {
      color = color * whole.extents[i] + whole.coordinates[i];
    }
  }
  Ref<Comm> made = new_comm(comm, message::split(*comm.context, color, 0));
  settle(*made, std::move(part));
  *newcomm = made.take();
}

void cart_map(Comm& comm, int ndims, const int* dims, const int* periods, int* newrank) {
  const int size = size_of(grid_of(ndims, dims, periods, comm.size()));
  *newrank = comm.rank() < size ? comm.rank() : MPI_UNDEFINED;
}

void cartdim_get(Comm& comm, int* ndims) {
  *ndims = static_cast<int>(topology_of(comm, Kind::cartesian).extents.size());
}

void cart_get(Comm& comm, int maxdims, int* dims, int* periods, int* coords) {
  const Topology& grid = topology_of(comm, Kind::cartesian);
  check_room("maxdims", maxdims, grid.extents.size());
  std::ranges::copy(grid.extents, dims);
  std::ranges::copy(grid.periods, periods);
  std::ranges::copy(grid.coordinates, coords);
}

void cart_coords(Comm& comm, int rank, int maxdims, int* coords) {
  const Topology& grid = topology_of(comm, Kind::cartesian);
  if (rank < 0 || rank >= comm.size()) {
    throw Failure(MPI_ERR_RANK, fmt::format("rank is {}: the ranks of comm are 0 to {}", rank, comm.size() - 1));
  }
  check_room("maxdims", maxdims, grid.extents.size());
  std::ranges::copy(coordinates_of(grid, rank), coords);
}

void cart_rank(Comm& comm, const int* coords, int* rank) {
  const Topology& grid = topology_of(comm, Kind::cartesian);
  *rank = rank_at(grid, coords);
  if (*rank >= 0) return;
  std::string text;
  for (std::size_t i = 0; i < grid.extents.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(coords[i]);
  throw Failure(MPI_ERR_ARG,
                fmt::format("coords is ({}), which is outside the grid in a dimension without period", text));
}

void cart_shift(Comm& comm, int direction, int disp, int* rank_source, int* rank_dest) {
  const Topology& grid = topology_of(comm, Kind::cartesian);
  if (direction < 0 || static_cast<std::size_t>(direction) >= grid.extents.size()) {
    throw Failure(MPI_ERR_DIMS,
                  fmt::format("direction is {}: the topology has {} dimensions", direction, grid.extents.size()));
  }
  if (disp == std::numeric_limits<int>::min()) throw Failure(MPI_ERR_ARG, "disp is too small");
  *rank_source = shifted(grid, static_cast<std::size_t>(direction), -disp);
  *rank_dest = shifted(grid, static_cast<std::size_t>(direction), disp);
}

}  // namespace tonari::mpi
