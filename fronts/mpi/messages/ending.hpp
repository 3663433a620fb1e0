#pragma once

namespace tonari::mpi {

/// Called before the job ends: waits until the messages in attached buffers have left, and ends requests that the
/// program has freed while they were active.
void end_messages();

}  // namespace tonari::mpi
