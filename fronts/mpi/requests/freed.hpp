#pragma once

#include "mpi/request.hpp"

#include <memory>

namespace tonari::mpi {

/// Takes an active request that the program has freed: it goes on, and is destroyed once it is complete.
void keep_freed(std::unique_ptr<Request> request);
/// Frees a generalised request: it lives until the program completes its operation.
void free_generalised(Request& request);
/// Ends all of them, before the job ends: waits for sends, and withdraws receives that have met no message.
void end_freed();

}  // namespace tonari::mpi
