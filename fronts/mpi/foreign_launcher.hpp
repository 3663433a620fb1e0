#pragma once

namespace tonari::mpi {

/// Throws Failure if another MPI's launcher started this process as one of several ranks and it could only join as a
/// job of one rank: otherwise N separate programs would run.
void refuse_foreign_launcher();

}  // namespace tonari::mpi
