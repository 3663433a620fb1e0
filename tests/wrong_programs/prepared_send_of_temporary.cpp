// A prepared send refers to its buffer as long as it lives.
// error: static assertion failed: a started operation reads its buffer until it is complete
#include <tonari/tonari.hpp>

bool give(tonari::Communicator& world) {
#ifdef WRONG
  auto send = world.prepare_send(5, tonari::Rank{1});
  return send.start();
#else
  const int number = 5;
  auto send = world.prepare_send(number, tonari::Rank{1});
  return send.start();
#endif
}
