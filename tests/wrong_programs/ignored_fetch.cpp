// An atomic operation may fail, and then it has changed nothing.
// error: ignoring returned value of type 'tonari::Result<long int>', declared with attribute 'nodiscard'
#include <tonari/tonari.hpp>

#pragma GCC diagnostic error "-Wunused-result"

bool count(tonari::Window& window) {
#ifdef WRONG
  window.fetch_add(window.at(tonari::JobRank{0}), 1L);
  return true;
#else
  return window.fetch_add(window.at(tonari::JobRank{0}), 1L).status == tonari::Status::ok;
#endif
}
