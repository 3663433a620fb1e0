#pragma once

#include "mpi/comm.hpp"

namespace tonari::mpi {

/// Returns the topology of a communicator, which must be of this kind. Throws Failure.
const Topology& topology_of(const Comm& comm, Topology::Kind kind);

/// Makes a communicator of the first `ranks` ranks of `comm`, with a topology. Null on the other ranks. Collective.
Ref<Comm> comm_of_first(Comm& comm, int ranks);

}  // namespace tonari::mpi
