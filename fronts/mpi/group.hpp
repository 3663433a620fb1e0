#pragma once

#include "mpi/object.hpp"

#include <tonari/job.hpp>

namespace tonari::mpi {
using Group = MPI_ABI_Group;
}

/// An ordered set of ranks of the job.
struct MPI_ABI_Group : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x67727570;
  explicit MPI_ABI_Group(tonari::Group of_job) : Object(word), ranks(std::move(of_job)) {}
  tonari::Group ranks;
};
