// A request that is not kept is waited for at once.
// error: ignoring returned value of type 'tonari::Request', declared with attribute 'nodiscard'
#include <tonari/tonari.hpp>

#pragma GCC diagnostic error "-Wunused-result"

bool give(tonari::Communicator& world, const int& number) {
#ifdef WRONG
  world.start_send(number, tonari::Rank{1});
  return true;
#else
  auto request = world.start_send(number, tonari::Rank{1});
  return request.wait().status == tonari::Status::ok;
#endif
}
