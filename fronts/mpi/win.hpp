#pragma once

#include "mpi/attributes.hpp"
#include "mpi/errhandler.hpp"
#include "mpi/object.hpp"

namespace tonari::mpi {
using Win = MPI_ABI_Win;
}

/// One-sided communication is not done yet: no window exists.
struct MPI_ABI_Win : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x77696e64;
  tonari::mpi::Ref<tonari::mpi::Errhandler> errhandler;
  tonari::mpi::Attributes attributes;
};
