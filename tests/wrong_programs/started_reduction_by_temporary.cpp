// A started reduction calls its operation until it is complete.
// error: use of deleted function
#include <tonari/tonari.hpp>

tonari::Status add(tonari::Communicator& world, int& sum) {
#ifdef WRONG
  auto request = world.start_all_reduce(sum, [](int a, int b) { return a + b; });
  return request.wait().status;
#else
  const auto plus = [](int a, int b) { return a + b; };
  auto request = world.start_all_reduce(sum, plus);
  return request.wait().status;
#endif
}
