// A rank of the job is no rank of a communicator, which may be a part of the job in another order.
// error: no matching function for call to 'tonari::Communicator::send(int, tonari::JobRank)'
#include <tonari/tonari.hpp>

tonari::Status greet(tonari::Job& job, tonari::Communicator& world) {
#ifdef WRONG
  return world.send(1, job.neighbour(+1));
#else
  return world.send(1, world.neighbour(+1));
#endif
}
