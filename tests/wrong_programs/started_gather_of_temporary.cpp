// The buffers of a started collective must live until it is complete, too.
// error: static assertion failed: data is received into a buffer that must outlive the call
#include <tonari/tonari.hpp>

#include <vector>

tonari::Status collect(tonari::Communicator& world, const std::vector<int>& mine) {
#ifdef WRONG
  auto request = world.start_all_gather(mine, std::vector<int>(100));
  return request.wait().status;
#else
  std::vector<int> all(100);
  auto request = world.start_all_gather(mine, all);
  return request.wait().status;
#endif
}
