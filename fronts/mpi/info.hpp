#pragma once

#include "mpi/object.hpp"

#include <string>
#include <utility>
#include <vector>

namespace tonari::mpi {
using Info = MPI_ABI_Info;
/// Keys and values, in the order in which they were set first.
using Hints = std::vector<std::pair<std::string, std::string>>;
}  // namespace tonari::mpi

struct MPI_ABI_Info : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x696e666f;
  MPI_ABI_Info() noexcept : Object(word) {}
  tonari::mpi::Hints hints;
};
