#pragma once

#include "pager/region.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace tonari::pager {

/// Counts as a user of a region while it exists.
class RegionUse {
 public:
  explicit RegionUse(Region& region) noexcept : region_(&region) {}  // already counted
  RegionUse(RegionUse&& other) noexcept : region_(std::exchange(other.region_, nullptr)) {}
  ~RegionUse() {
    if (region_ != nullptr) region_->users.fetch_sub(1, std::memory_order_release);
  }
  [[nodiscard]] Region& operator*() const noexcept { return *region_; }
  [[nodiscard]] Region* operator->() const noexcept { return region_; }

 private:
  Region* region_;
};

/// All regions, by address.
///
/// Threads: any.
class Regions {
 public:
  /// Throws SetupError if it overlaps another region.
  Region& add(std::unique_ptr<Region> region);
  /// Removes the region, so that it is not found any more. Others may use it until PageMover::forget() returns. Returns
  /// nullptr if no region starts there.
  std::unique_ptr<Region> remove(Address start) noexcept;
  std::optional<RegionUse> find(Address address) noexcept;
  /// The caller sees to it that no region is removed while it uses them.
  [[nodiscard]] std::vector<Region*> all();
  /// Returns the start of any region, or nullopt.
  [[nodiscard]] std::optional<Address> first() noexcept;

 private:
  std::mutex mutex_;                              // guards regions_; held for a search
  std::vector<std::unique_ptr<Region>> regions_;  // by address
};

}  // namespace tonari::pager
