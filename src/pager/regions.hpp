#pragma once

#include "pager/region.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace tonari::pager {

/// Counts as somebody who works on a region.
class RegionUse {
 public:
  explicit RegionUse(Region& region) noexcept : region_(&region) {}  // counted already
  RegionUse(RegionUse&& other) noexcept : region_(std::exchange(other.region_, nullptr)) {}
  ~RegionUse() {
    if (region_ != nullptr) region_->users.fetch_sub(1, std::memory_order_release);
  }
  [[nodiscard]] Region& operator*() const noexcept { return *region_; }
  [[nodiscard]] Region* operator->() const noexcept { return region_; }

 private:
  Region* region_;
};

/// The regions there are, by address.
///
/// Threads: any.
class Regions {
 public:
  /// Throws SetupError where it overlaps another.
  Region& add(std::unique_ptr<Region> region);
  /// Takes it out, so that nobody finds it any more, and waits until nobody works on it.
  std::unique_ptr<Region> remove(Address start) noexcept;
  std::optional<RegionUse> find(Address address) noexcept;
  /// Any, or none.
  [[nodiscard]] std::optional<Address> first() noexcept;

 private:
  std::mutex mutex_;                              // of the next; held for a search
  std::vector<std::unique_ptr<Region>> regions_;  // by address
};

}  // namespace tonari::pager
