#include "functions.hpp"
#include "mpi/datatypes/derived.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

// Datatypes of the part that a rank has of an array.
namespace tonari::mpi {

namespace {

using Role = Construction::Role;
using message::Layout;

void need_array(bool is_there, const char* argument) {
  if (!is_there) throw Failure(MPI_ERR_ARG, fmt::format("{} is a null pointer", argument));
}
void need_dimensions(int ndims) {
  if (ndims < 1) throw Failure(MPI_ERR_ARG, fmt::format("ndims is {}: it must be at least 1", ndims));
}
void need_order(int order) {
  if (order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN) return;
  throw Failure(MPI_ERR_ARG, fmt::format("order is {}: it must be MPI_ORDER_C or MPI_ORDER_FORTRAN", order));
}
[[noreturn]] void refuse(const char* array, int index, MPI_Count value, const std::string& remedy) {
  throw Failure(MPI_ERR_ARG, fmt::format("{}[{}] is {}: {}", array, index, value, remedy));
}

/// The elements that a rank has, built up from the dimension that varies fastest.
struct Part {
  explicit Part(const Datatype& old) : layout(old.layout), extent(old.extent) {}

  MPI_Count elements = 1;
  Layout layout;
  MPI_Count extent;  ///< Bytes of all indices of the dimensions so far.

  void select(MPI_Count size, MPI_Count first, MPI_Count count);
  void select_cyclic(MPI_Count size, MPI_Count block, MPI_Count first, MPI_Count distance);
};

/// Adds a dimension of `size` indices, of which `count` are selected, from `first` on.
void Part::select(MPI_Count size, MPI_Count first, MPI_Count count) {
  const Layout::Piece piece{product(first, extent), static_cast<std::size_t>(count)};
  layout = Layout::listed({&piece, 1}, layout, extent);
  elements = product(elements, count);
  extent = product(extent, size);
}

/// Adds a dimension of `size` indices, of which blocks of `block` are selected, `distance` apart, from `first` on.
void Part::select_cyclic(MPI_Count size, MPI_Count block, MPI_Count first, MPI_Count distance) {
  const MPI_Count room = std::max<MPI_Count>(size - first, 0);
  const MPI_Count blocks = room / distance + (room % distance >= block ? 1 : 0);
  const MPI_Count rest = room % distance >= block ? 0 : room % distance;
  const auto length = static_cast<std::size_t>(block);
  const Layout whole =
      Layout::strided(static_cast<std::size_t>(blocks), length, product(distance, extent), layout, extent);
  std::vector<Layout::Member> members{{product(first, extent), 1, &whole, 0}};
  if (rest != 0) {
    const MPI_Count last = sum(first, product(blocks, distance));
    members.push_back({product(last, extent), static_cast<std::size_t>(rest), &layout, extent});
  }
  layout = Layout::joined(members);
  elements = product(elements, sum(product(blocks, block), rest));
  extent = product(extent, size);
}

MPI_Datatype make_part(const Datatype& old, Part part, Construction construction) {
  TypeMap map = map_of(old, part.elements);
  map.layout = std::move(part.layout);
  map.extent = part.extent;
  map.has_set_bounds = true;
  return make_type(std::move(map), std::move(construction));
}

// Dimensions from the one that varies fastest on.
int dimension(int step, int ndims, int order) noexcept { return order == MPI_ORDER_C ? ndims - 1 - step : step; }

/// One dimension of a distributed array.
struct Distribution {
  MPI_Count size;
  int kind;
  int argument;
  int processes;
  int coordinate;  ///< Place of the rank among the processes.
};

void distribute(Part& part, const Distribution& of, int index) {
  const bool is_default = of.argument == MPI_DISTRIBUTE_DFLT_DARG;
  if (!is_default && of.argument < 1 && of.kind != MPI_DISTRIBUTE_NONE) {
    refuse("array_of_dargs", index, of.argument, "it must be positive, or MPI_DISTRIBUTE_DFLT_DARG");
  }
  switch (of.kind) {
    case MPI_DISTRIBUTE_NONE:
      if (of.processes != 1) refuse("array_of_psizes", index, of.processes, "it must be 1 with MPI_DISTRIBUTE_NONE");
      return part.select(of.size, 0, of.size);
    case MPI_DISTRIBUTE_BLOCK: {
      const MPI_Count block = is_default ? (of.size - 1) / of.processes + 1 : of.argument;
      if (product(block, of.processes) < of.size) {
        refuse("array_of_dargs", index, of.argument,
               fmt::format("{} blocks of that size do not cover {} elements", of.processes, of.size));
      }
      const MPI_Count first = std::min(product(block, of.coordinate), of.size);
      return part.select(of.size, first, std::min(block, of.size - first));
    }
    case MPI_DISTRIBUTE_CYCLIC: {
      const MPI_Count block = is_default ? 1 : of.argument;
      return part.select_cyclic(of.size, block, product(block, of.coordinate), product(block, of.processes));
    }
    default:
      refuse("array_of_distribs", index, of.kind,
             "it must be MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC or MPI_DISTRIBUTE_NONE");
  }
}

// The place of a rank in the grid of processes, whose last dimension varies fastest in any order of the array.
std::vector<int> coordinates(int size, int rank, int ndims, const int* psizes) {
  MPI_Count processes = 1;
  for (int i = 0; i < ndims; ++i) {
    if (psizes[i] < 1) refuse("array_of_psizes", i, psizes[i], "it must be positive");
    processes = product(processes, psizes[i]);
  }
  if (processes != size) {
    throw Failure(MPI_ERR_ARG, fmt::format("size is {}: the product of array_of_psizes is {}", size, processes));
  }
  if (rank < 0 || rank >= size) {
    throw Failure(MPI_ERR_ARG, fmt::format("rank is {}: it must be from 0 to {}", rank, size - 1));
  }
  std::vector<int> result(static_cast<std::size_t>(ndims));
  for (int i = ndims - 1; i >= 0; --i) {
    result[static_cast<std::size_t>(i)] = rank % psizes[i];
    rank /= psizes[i];
  }
  return result;
}

}  // namespace

void type_create_subarray(int ndims, Counts array_of_sizes, Counts array_of_subsizes, Counts array_of_starts, int order,
                          Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  refuse_absent(oldtype, "oldtype");
  need_dimensions(ndims);
  need_array(!array_of_sizes.is_null(), "array_of_sizes");
  need_array(!array_of_subsizes.is_null(), "array_of_subsizes");
  need_array(!array_of_starts.is_null(), "array_of_starts");
  need_order(order);
  for (int i = 0; i < ndims; ++i) {
    const MPI_Count size = array_of_sizes[i];
    const MPI_Count subsize = array_of_subsizes[i];
    const MPI_Count start = array_of_starts[i];
    if (size < 1) refuse("array_of_sizes", i, size, "it must be positive");
    if (subsize < 0 || subsize > size) {
      refuse("array_of_subsizes", i, subsize, fmt::format("it must be from 0 to array_of_sizes[{}], {}", i, size));
    }
    if (start < 0 || start > size - subsize) {
      refuse("array_of_starts", i, start,
             fmt::format("it must be from 0 to {} for that size and subsize", size - subsize));
    }
  }
  Construction construction(MPI_COMBINER_SUBARRAY, large);
  construction.add(Role::integer, ndims)
      .add(Role::count, array_of_sizes, ndims)
      .add(Role::count, array_of_subsizes, ndims)
      .add(Role::count, array_of_starts, ndims)
      .add(Role::integer, order)
      .add(oldtype);
  Part part(oldtype);
  for (int step = 0; step < ndims; ++step) {
    const int i = dimension(step, ndims, order);
    part.select(array_of_sizes[i], array_of_starts[i], array_of_subsizes[i]);
  }
  *newtype = make_part(oldtype, std::move(part), std::move(construction));
}

void type_create_darray(int size, int rank, int ndims, Counts array_of_gsizes, const int* array_of_distribs,
                        const int* array_of_dargs, const int* array_of_psizes, int order, Datatype& oldtype,
                        MPI_Datatype* newtype, bool large) {
  refuse_absent(oldtype, "oldtype");
  need_dimensions(ndims);
  need_array(!array_of_gsizes.is_null(), "array_of_gsizes");
  need_array(array_of_distribs != nullptr, "array_of_distribs");
  need_array(array_of_dargs != nullptr, "array_of_dargs");
  need_array(array_of_psizes != nullptr, "array_of_psizes");
  need_order(order);
  const std::vector<int> place = coordinates(size, rank, ndims, array_of_psizes);
  Construction construction(MPI_COMBINER_DARRAY, large);
  construction.add(Role::integer, size)
      .add(Role::integer, rank)
      .add(Role::integer, ndims)
      .add(Role::count, array_of_gsizes, ndims);
  for (const int* const array : {array_of_distribs, array_of_dargs, array_of_psizes}) {
    construction.add(Role::integer, Counts(array), ndims);
  }
  construction.add(Role::integer, order).add(oldtype);
  Part part(oldtype);
  for (int step = 0; step < ndims; ++step) {
    const int i = dimension(step, ndims, order);
    if (array_of_gsizes[i] < 1) refuse("array_of_gsizes", i, array_of_gsizes[i], "it must be positive");
    distribute(part,
               {array_of_gsizes[i], array_of_distribs[i], array_of_dargs[i], array_of_psizes[i],
                place[static_cast<std::size_t>(i)]},
               i);
  }
  *newtype = make_part(oldtype, std::move(part), std::move(construction));
}

}  // namespace tonari::mpi
