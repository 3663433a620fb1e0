#include "window/joining.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <mutex>
#include <utility>

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
  const Key key = is_join ? Key{head.as<Join>().group, head.as<Join>().sequence}
                          : Key{head.as<Made>().group, head.as<Made>().sequence};
  const std::lock_guard guard(lock_);
  heads_[key].push_back(head);
}

std::size_t Meetings::count(std::uint64_t group, std::uint32_t sequence) const noexcept {
  const std::lock_guard guard(lock_);
  const auto found = heads_.find({group, sequence});
  return found == heads_.end() ? 0 : found->second.size();
}

std::vector<fabric::Head> Meetings::take(std::uint64_t group, std::uint32_t sequence) {
  const std::lock_guard guard(lock_);
  const auto node = heads_.extract({group, sequence});
  return node.empty() ? std::vector<fabric::Head>() : std::move(node.mapped());
}

}  // namespace tonari::window
