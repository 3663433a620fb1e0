// An address means nothing to another process.
// error: static assertion failed: only trivially copyable values, contiguous ranges of them
#include <tonari/tonari.hpp>

#include <span>

tonari::Status give(tonari::Communicator& world, const int* numbers) {
#ifdef WRONG
  return world.send(numbers, tonari::Rank{1});
#else
  return world.send(std::span(numbers, 10), tonari::Rank{1});
#endif
}
