#pragma once

#include "share/guarded/heads.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace tonari::share {

/// A set of ranks, most often small.
class RankSet {
 public:
  void add(int rank) {
    const auto at = std::ranges::lower_bound(ranks_, rank);
    if (at == ranks_.end() || *at != rank) ranks_.insert(at, static_cast<ShortRank>(rank));
  }
  void add(std::span<const ShortRank> ranks) {
    for (const ShortRank each : ranks) add(each);
  }
  void remove(int rank) noexcept { std::erase(ranks_, rank); }
  void clear() noexcept { ranks_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return ranks_.empty(); }
  [[nodiscard]] std::span<const ShortRank> ranks() const noexcept { return ranks_; }

 private:
  std::vector<ShortRank> ranks_;  // sorted
};

}  // namespace tonari::share
