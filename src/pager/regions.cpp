#include "pager/regions.hpp"

#include <tonari/status.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tonari::pager {

namespace {

// Returns the first region that ends after `address`.
auto position(const std::vector<std::unique_ptr<Region>>& regions, Address address) {
  return std::ranges::upper_bound(regions, address, {}, [](const auto& each) { return each->end(); });
}

}  // namespace

Region& Regions::add(std::unique_ptr<Region> region) {
  const std::lock_guard guard(mutex_);
  const auto next = position(regions_, region->start());
  if (next != regions_.end() && (*next)->start() < region->end()) {
    throw SetupError("a region overlaps an existing one: remove that one first");
  }
  return **regions_.insert(next, std::move(region));
}

std::unique_ptr<Region> Regions::remove(Address start) noexcept {
  std::unique_ptr<Region> region;
  {
    const std::lock_guard guard(mutex_);
    const auto found = position(regions_, start);
    if (found == regions_.end() || (*found)->start() != start) return nullptr;
    region = std::move(regions_[static_cast<std::size_t>(found - regions_.begin())]);
    regions_.erase(found);
    region->leaves.store(true, std::memory_order_relaxed);
  }
  // Acquire: sees all that the region's users did. They are few, and no new ones come.
  while (region->users.load(std::memory_order_acquire) != 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return region;
}

std::optional<RegionUse> Regions::find(Address address) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = position(regions_, address);
  if (found == regions_.end() || !(*found)->contains(address)) return std::nullopt;
  (*found)->users.fetch_add(1, std::memory_order_relaxed);  // under the lock that remove() takes
  return RegionUse{**found};
}

std::optional<Address> Regions::first() noexcept {
  const std::lock_guard guard(mutex_);
  if (regions_.empty()) return std::nullopt;
  return regions_.front()->start();
}

}  // namespace tonari::pager
