#include "window/joining.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <mutex>

namespace tonari::window {

std::uint64_t number_of(const Group& group) noexcept {
  const auto ranks = std::as_bytes(std::span(group.ranks()));
  return XXH3_64bits(ranks.data(), ranks.size());
}

std::uint32_t Meetings::next(std::uint64_t group) {
  const std::lock_guard guard(lock_);
  return sequences_[group]++;
}

void Meetings::receive(const fabric::Head& head) {
  const bool is_join = head.kind == fabric::Kind::window_join;
  const Key key = is_join ? Key{head.as<Join>().group, head.as<Join>().sequence, head.kind}
                          : Key{head.as<Made>().group, head.as<Made>().sequence, head.kind};
  const std::lock_guard guard(lock_);
  heads_[key].try_emplace(head.source, head);
}

bool Meetings::has_all(const Key& key, std::span<const int> ranks) const noexcept {
  const std::lock_guard guard(lock_);
  const auto found = heads_.find(key);
  if (found == heads_.end() || found->second.size() < ranks.size()) return false;
  return std::ranges::all_of(ranks,
                             [&found](int rank) { return found->second.contains(static_cast<std::uint32_t>(rank)); });
}

std::vector<fabric::Head> Meetings::take(const Key& key, std::span<const int> ranks) {
  const std::lock_guard guard(lock_);
  const auto node = heads_.extract(key);
  std::vector<fabric::Head> heads;
  for (const int rank : ranks) {
    if (node.empty()) break;
    const auto found = node.mapped().find(static_cast<std::uint32_t>(rank));
    if (found != node.mapped().end()) heads.push_back(found->second);
  }
  return heads;
}

}  // namespace tonari::window
