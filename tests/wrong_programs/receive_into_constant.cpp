// A receive writes to its buffer.
// error: static assertion failed: data cannot be received into a const buffer
#include <tonari/tonari.hpp>

#include <vector>

tonari::Status take(tonari::Communicator& world) {
#ifdef WRONG
  const std::vector<int> numbers(10);
  return world.receive(numbers, tonari::Rank{1}).status;
#else
  std::vector<int> numbers(10);
  return world.receive(numbers, tonari::Rank{1}).status;
#endif
}
