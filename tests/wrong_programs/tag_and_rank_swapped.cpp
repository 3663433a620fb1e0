// The rank comes first, then the tag.
// error: no matching function for call to 'tonari::Communicator::send(int, tonari::Tag, tonari::Rank)'
#include <tonari/tonari.hpp>

tonari::Status greet(tonari::Communicator& world) {
#ifdef WRONG
  return world.send(1, tonari::Tag{7}, tonari::Rank{0});
#else
  return world.send(1, tonari::Rank{0}, tonari::Tag{7});
#endif
}
