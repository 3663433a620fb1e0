#pragma once

#include "mpi/attributes.hpp"
#include "mpi/errhandler.hpp"
#include "mpi/info.hpp"
#include "mpi/object.hpp"

#include <memory>

namespace tonari::mpi {
using Session = MPI_ABI_Session;
using Win = MPI_ABI_Win;
using File = MPI_ABI_File;
class AttachedBuffer;
}  // namespace tonari::mpi

struct MPI_ABI_Session : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x73657373;
  MPI_ABI_Session() noexcept : Object(word) {}
  tonari::mpi::Ref<tonari::mpi::Errhandler> errhandler;
  tonari::mpi::Hints hints;
  int thread_level = MPI_THREAD_MULTIPLE;
  std::shared_ptr<tonari::mpi::AttachedBuffer> attached_buffer;  ///< For buffered sends. Null if it has none.
};

/// One-sided communication is not done yet: no window exists.
struct MPI_ABI_Win : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x77696e64;
  tonari::mpi::Ref<tonari::mpi::Errhandler> errhandler;
  tonari::mpi::Attributes attributes;
};

/// Files are not done yet: none exists.
struct MPI_ABI_File : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x66696c65;
  MPI_ABI_File() noexcept : Object(word) {}
  tonari::mpi::Ref<tonari::mpi::Errhandler> errhandler;
};
