#include <tonari/job.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace tonari {

Group::Group(std::vector<int> ranks) : ranks_(std::move(ranks)) {
  if (ranks_.empty()) return;
  if (const int lowest = *std::ranges::min_element(ranks_); lowest < 0) {
    throw std::invalid_argument(fmt::format("a group cannot hold rank {}: ranks count from 0", lowest));
  }
  positions_.assign(static_cast<std::size_t>(*std::ranges::max_element(ranks_)) + 1, -1);
  for (int i = 0; i < size(); ++i) {
    int& position = positions_[static_cast<std::size_t>(at(i))];
    if (position >= 0) {
      throw std::invalid_argument(fmt::format("a group holds each rank once: {} is at {} and {}", at(i), position, i));
    }
    position = i;
  }
}

Group Group::first(int size) {
  if (size < 0) throw std::invalid_argument(fmt::format("a group cannot have {} ranks", size));
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return Group{std::move(ranks)};
}

}  // namespace tonari
