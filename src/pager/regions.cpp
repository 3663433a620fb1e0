#include "pager/regions.hpp"

#include <tonari/status.hpp>

#include <algorithm>

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
  const std::lock_guard guard(mutex_);
  const auto found = position(regions_, start);
  if (found == regions_.end() || (*found)->start() != start) return nullptr;
  std::unique_ptr<Region> region = std::move(regions_[static_cast<std::size_t>(found - regions_.begin())]);
  regions_.erase(found);
  return region;
}

std::optional<RegionUse> Regions::find(Address address) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = position(regions_, address);
  if (found == regions_.end() || !(*found)->contains(address)) return std::nullopt;
  (*found)->users.fetch_add(1, std::memory_order_relaxed);  // under the lock that remove() takes
  return RegionUse{**found};
}

std::vector<Region*> Regions::all() {
  const std::lock_guard guard(mutex_);
  std::vector<Region*> found;
  for (const auto& each : regions_) found.push_back(each.get());
  return found;
}

std::optional<Address> Regions::first() noexcept {
  const std::lock_guard guard(mutex_);
  if (regions_.empty()) return std::nullopt;
  return regions_.front()->start();
}

}  // namespace tonari::pager
