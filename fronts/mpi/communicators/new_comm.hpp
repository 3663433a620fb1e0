#pragma once

#include "message/creation.hpp"
#include "mpi/comm.hpp"

namespace tonari::mpi {

/// Returns a new communicator that has the error handler of `parent`. Null if this rank is in no new communicator.
/// Throws Failure if it could not be made.
Ref<Comm> new_comm(const Comm& parent, message::NewContext made);

}  // namespace tonari::mpi
