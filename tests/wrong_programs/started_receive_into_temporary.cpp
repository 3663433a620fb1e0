// The vector would be destroyed before the message arrives.
// error: static assertion failed: data is received into a buffer that must outlive the call
#include <tonari/tonari.hpp>

#include <vector>

int take(tonari::Communicator& world) {
#ifdef WRONG
  auto request = world.start_receive(std::vector<int>(10), tonari::Rank{1});
  return request.wait().status == tonari::Status::ok ? 1 : 0;
#else
  std::vector<int> numbers(10);
  auto request = world.start_receive(numbers, tonari::Rank{1});
  return request.wait().status == tonari::Status::ok ? numbers[0] : 0;
#endif
}
