// The vector would be destroyed before it is sent.
// error: static assertion failed: a started operation reads its buffer until it is complete
#include <tonari/tonari.hpp>

#include <vector>

tonari::Status give(tonari::Communicator& world) {
#ifdef WRONG
  auto request = world.start_send(std::vector<int>(10), tonari::Rank{1});
  return request.wait().status;
#else
  const std::vector<int> numbers(10);
  auto request = world.start_send(numbers, tonari::Rank{1});
  return request.wait().status;
#endif
}
