// An access to guarded data without a name is released before the block begins.
// error: use of deleted function
#include <tonari/tonari.hpp>

bool add(tonari::guarded<int>& data, int& sum) {
#ifdef WRONG
  if (data.write()) return ++sum > 0;
#else
  if (const auto access = data.write()) return ++sum > 0;
#endif
  return false;
}
