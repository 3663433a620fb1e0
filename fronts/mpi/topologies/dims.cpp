#include "functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

// MPI_Dims_create.
namespace tonari::mpi {

namespace {

// Extents of this product, the largest first, as close to each other as possible. Tries the divisors of `number` for
// the first extent, from the smallest that can be the largest extent on, and so on for the rest.
bool balance(int number, std::size_t dimensions, int largest, std::vector<int>& extents) {
  if (dimensions == 1) {
    if (number > largest) return false;
    extents.push_back(number);
    return true;
  }
  for (int extent = 1; extent <= std::min(number, largest); ++extent) {
    if (number % extent != 0) continue;
    long long most = 1;  // product of extents that are not larger than this one
    for (std::size_t i = 0; i < dimensions && most < number; ++i) most *= extent;
    if (most < number) continue;
    extents.push_back(extent);
    if (balance(number / extent, dimensions - 1, extent, extents)) return true;
    extents.pop_back();
  }
  return false;
}

}  // namespace

void dims_create(int nnodes, int ndims, int* dims) {
  if (ndims < 0) throw Failure(MPI_ERR_DIMS, fmt::format("ndims is {}: it must not be negative", ndims));
  if (nnodes < 1) throw Failure(MPI_ERR_ARG, fmt::format("nnodes is {}: there must be at least one", nnodes));
  long long fixed = 1;
  std::size_t open = 0;
  for (int i = 0; i < ndims; ++i) {
    if (dims[i] < 0) throw Failure(MPI_ERR_DIMS, fmt::format("dims[{}] is {}: it must not be negative", i, dims[i]));
    if (dims[i] == 0) {
      ++open;
    } else if ((fixed *= dims[i]) > nnodes) {
      break;
    }
  }
  if (nnodes % fixed != 0 || (open == 0 && ndims > 0 && fixed != nnodes)) {
    throw Failure(MPI_ERR_DIMS,
                  fmt::format("nnodes is {}, which the dimensions that are given ({}) do not divide", nnodes, fixed));
  }
  if (open == 0) return;
  std::vector<int> extents;
  (void)balance(static_cast<int>(nnodes / fixed), open, nnodes, extents);
  auto next = extents.begin();
  for (int i = 0; i < ndims; ++i) {
    if (dims[i] == 0) dims[i] = *next++;
  }
}

}  // namespace tonari::mpi
