// A receive may fail, and then the buffer holds nothing.
// error: ignoring returned value of type 'tonari::Result<tonari::Envelope>', declared with attribute 'nodiscard'
#include <tonari/tonari.hpp>

#pragma GCC diagnostic error "-Wunused-result"

int take(tonari::Communicator& world) {
#ifdef WRONG
  int number = 0;
  world.receive(number, tonari::Rank{1});
  return number;
#else
  int number = 0;
  return world.receive(number, tonari::Rank{1}).status == tonari::Status::ok ? number : -1;
#endif
}
