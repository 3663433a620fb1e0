// The received data would be destroyed at the end of the call.
// error: static assertion failed: data is received into a buffer that must outlive the call
#include <tonari/tonari.hpp>

tonari::Status take(tonari::Communicator& world) {
#ifdef WRONG
  return world.receive(5, tonari::Rank{1}).status;
#else
  int number = 0;
  return world.receive(number, tonari::Rank{1}).status;
#endif
}
