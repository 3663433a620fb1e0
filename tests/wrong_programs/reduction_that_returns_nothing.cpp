// An operation takes two elements and returns one.
// error: static assertion failed: an operation takes two elements and returns one
#include <tonari/tonari.hpp>

tonari::Status add(tonari::Communicator& world, int& sum) {
#ifdef WRONG
  return world.all_reduce(sum, [](int& a, int b) { a += b; });
#else
  return world.all_reduce(sum, [](int a, int b) { return a + b; });
#endif
}
