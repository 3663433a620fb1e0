// std::lock_guard ignores that locking can fail, so a share::mutex does not work with it.
// error: has no member named 'unlock'
#include <tonari/tonari.hpp>

#include <mutex>

bool add(tonari::share::mutex& mutex, int& sum) {
#ifdef WRONG
  const std::lock_guard lock(mutex);
#else
  const auto lock = mutex.lock();
  if (!lock) return false;
#endif
  ++sum;
  return true;
}
