// A lock that is not kept is released at once.
// error: ignoring returned value of type 'tonari::share::mutex::Lock', declared with attribute 'nodiscard'
#include <tonari/tonari.hpp>

#pragma GCC diagnostic error "-Wunused-result"

bool add(tonari::share::mutex& mutex, int& sum) {
#ifdef WRONG
  mutex.lock();
#else
  const auto lock = mutex.lock();
  if (!lock) return false;
#endif
  ++sum;
  return true;
}
