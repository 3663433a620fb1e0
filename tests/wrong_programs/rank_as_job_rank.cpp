// A window is addressed by ranks of the job; Communicator::job_rank converts.
// error: cannot convert 'tonari::Rank' to 'tonari::JobRank'
#include <tonari/tonari.hpp>

tonari::GlobalAddress place(tonari::Window& window, tonari::Communicator& world) {
#ifdef WRONG
  return window.at(world.rank());
#else
  return window.at(world.job_rank(world.rank()));
#endif
}
