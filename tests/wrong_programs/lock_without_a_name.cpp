// A lock without a name is released before the block begins.
// error: use of deleted function
#include <tonari/tonari.hpp>

bool add(tonari::share::mutex& mutex, int& sum) {
#ifdef WRONG
  if (mutex.lock()) return ++sum > 0;
#else
  if (const auto lock = mutex.lock()) return ++sum > 0;
#endif
  return false;
}
