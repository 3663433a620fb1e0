#pragma once

#include "mpi/object.hpp"
#include "mpi/session_buffer.hpp"

#include <tonari/job.hpp>

namespace tonari::mpi {
using Group = MPI_ABI_Group;
}

/// An ordered set of ranks of the job.
struct MPI_ABI_Group : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x67727570;
  MPI_ABI_Group(tonari::Group of_job, std::shared_ptr<tonari::mpi::SessionBuffer> of_session)
      : Object(word), ranks(std::move(of_job)), session_buffer(std::move(of_session)) {}
  tonari::Group ranks;
  std::shared_ptr<tonari::mpi::SessionBuffer> session_buffer;  ///< Null if the group is of no session.
};
