#include "base/edit_distance.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace tonari {

std::size_t edit_distance(std::string_view left, std::string_view right) {
  // Rows of the table distance[i][j]: the distance between the first i letters of `left` and the first j of `right`.
  std::vector<std::size_t> two_above(right.size() + 1);
  std::vector<std::size_t> above(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::swap(two_above, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const bool same = left[i - 1] == right[j - 1];
      row[j] = std::min({above[j - 1] + (same ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row.back();
}

std::string_view likely_meant(std::string_view typed, std::span<const std::string_view> known) {
  if (known.empty()) return {};
  const auto distance = [&](std::string_view word) { return edit_distance(typed, word); };
  const std::string_view nearest = *std::ranges::min_element(known, {}, distance);
  // Allows one mistake in a word of 3 to 5 letters, two in 6 or 7, three in longer words. Shorter words allow no
  // mistake, because almost any word would match them.
  const std::size_t mistakes_max = nearest.size() < 3 ? 0 : std::clamp<std::size_t>(nearest.size() / 2, 2, 4) - 1;
  return distance(nearest) <= mistakes_max ? nearest : std::string_view{};
}

}  // namespace tonari
