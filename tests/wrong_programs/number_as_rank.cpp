// A number does not say whether it is a rank, a tag or a count.
// error: no matching function for call to 'tonari::Communicator::send(int, int)'
#include <tonari/tonari.hpp>

tonari::Status greet(tonari::Communicator& world) {
#ifdef WRONG
  return world.send(1, 0);
#else
  return world.send(1, tonari::Rank{0});
#endif
}
