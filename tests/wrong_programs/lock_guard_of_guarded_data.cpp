// Guarded data is reached through an access, which must be tested.
// error: is private within this context
#include <tonari/tonari.hpp>

#include <mutex>

bool add(tonari::guarded<int>& sum) {
#ifdef WRONG
  const std::lock_guard lock(sum);
#else
  const auto access = sum.write();
  if (!access) return false;
  ++*access;
#endif
  return true;
}
