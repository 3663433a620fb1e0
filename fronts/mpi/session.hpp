#pragma once

#include "mpi/errhandler.hpp"
#include "mpi/info.hpp"
#include "mpi/object.hpp"
#include "mpi/session_buffer.hpp"

#include <memory>

namespace tonari::mpi {
using Session = MPI_ABI_Session;
}

struct MPI_ABI_Session : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x73657373;
  MPI_ABI_Session() : Object(word) {}
  tonari::mpi::Ref<tonari::mpi::Errhandler> errhandler;
  tonari::mpi::Hints hints;
  int thread_level = MPI_THREAD_MULTIPLE;
  std::shared_ptr<tonari::mpi::SessionBuffer> buffer = std::make_shared<tonari::mpi::SessionBuffer>();
};
