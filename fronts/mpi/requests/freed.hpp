#pragma once

#include "mpi/request.hpp"

namespace tonari::mpi {

/// Frees a generalised request: it lives until the program completes its operation.
void free_generalised(Request& request);
/// Ends all requests that the program has freed while they were active, before the job ends: waits for sends, and
/// withdraws receives that have met no message.
void end_freed();

}  // namespace tonari::mpi
