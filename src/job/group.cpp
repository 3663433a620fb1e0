#include <tonari/job.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tonari {

Group::Group(std::vector<JobRank> ranks) : ranks_(std::move(ranks)) {
  if (ranks_.empty()) return;
  if (const JobRank lowest = *std::ranges::min_element(ranks_); lowest < 0) {
    throw std::invalid_argument(fmt::format("a group cannot hold rank {}: ranks count from 0", lowest.value()));
  }
  positions_.assign(std::ranges::max_element(ranks_)->index() + 1, Rank{-1});
  for (Rank i{0}; i < size(); ++i) {
    Rank& position = positions_[at(i).index()];
    if (position >= 0) {
      throw std::invalid_argument(
          fmt::format("a group holds each rank once: {} is at {} and {}", at(i).value(), position.value(), i.value()));
    }
    position = i;
  }
}

Group Group::first(int size) {
  if (size < 0) throw std::invalid_argument(fmt::format("a group cannot have {} ranks", size));
  std::vector<JobRank> ranks;
  ranks.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(rank);
  return Group{std::move(ranks)};
}

}  // namespace tonari
