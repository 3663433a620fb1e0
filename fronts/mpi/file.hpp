#pragma once

#include "mpi/errhandler.hpp"
#include "mpi/object.hpp"

namespace tonari::mpi {
using File = MPI_ABI_File;
}

/// Files are not done yet: none exists but the one behind MPI_FILE_NULL.
struct MPI_ABI_File : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x66696c65;
  MPI_ABI_File() noexcept : Object(word) {}
  tonari::mpi::Ref<tonari::mpi::Errhandler> errhandler;
};
