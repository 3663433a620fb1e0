#include "fabric/watches.hpp"

#include <cstddef>
#include <mutex>
#include <new>

namespace tonari::fabric {

bool Watches::add(const Watched& what, Sleeper& sleeper) noexcept {
  const std::lock_guard guard(lock_);
  try {
    watches_.push_back({&what, &sleeper});
  } catch (const std::bad_alloc&) {
    return false;
  }
  count_.fetch_add(1, std::memory_order_relaxed);
  return !what.ready();
}

void Watches::remove(const Watched& what) noexcept {
  const std::lock_guard guard(lock_);
  const auto ended = std::erase_if(watches_, [&](const Watch& each) { return each.what == &what; });
  count_.fetch_sub(static_cast<std::uint32_t>(ended), std::memory_order_relaxed);
}

void Watches::wake_ready() noexcept {
  for (std::size_t i = 0;;) {
    Sleeper* to_wake = nullptr;
    {
      const std::lock_guard guard(lock_);
      while (i < watches_.size() && !watches_[i].what->ready()) ++i;
      if (i >= watches_.size()) return;
      to_wake = watches_[i++].sleeper;
    }
    to_wake->wake();
  }
}

}  // namespace tonari::fabric
