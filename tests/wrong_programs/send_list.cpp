// The elements of a std::list are not contiguous in memory.
// error: static assertion failed: only trivially copyable values, contiguous ranges of them
#include <tonari/tonari.hpp>

#include <list>
#include <vector>

tonari::Status give(tonari::Communicator& world, const std::list<int>& numbers) {
#ifdef WRONG
  return world.send(numbers, tonari::Rank{1});
#else
  return world.send(std::vector<int>(numbers.begin(), numbers.end()), tonari::Rank{1});
#endif
}
