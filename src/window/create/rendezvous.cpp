#include "window/create/rendezvous.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <mutex>

namespace tonari::window {

std::uint64_t number_of(const Group& group) noexcept {
  const auto ranks = std::as_bytes(std::span(group.ranks()));
  return XXH3_64bits(ranks.data(), ranks.size());
}

namespace {

template <class Body>
Rendezvous::Key key_of(const fabric::Head& head) noexcept {
  const auto body = head.as<Body>();
  return {body.group, body.sequence, head.kind.to<Kind>()};
}
Rendezvous::Key key_of(const fabric::Head& head) noexcept {
  switch (head.kind.to<Kind>()) {
    case Kind::window_join: return key_of<Join>(head);
    case Kind::window_made: return key_of<Made>(head);
    case Kind::window_told: return key_of<Told>(head);
    default: return key_of<Ready>(head);
  }
}

}  // namespace

std::uint32_t Rendezvous::next(std::uint64_t group) {
  const std::lock_guard guard(lock_);
  const std::uint32_t next = sequences_[group]++;
  std::erase_if(heads_, [&](const auto& each) { return each.first.group == group && each.first.sequence < next; });
  return next;
}

void Rendezvous::receive(const fabric::Head& head) {
  const Key key = key_of(head);
  const std::lock_guard guard(lock_);
  heads_[key].try_emplace(head.source, head);
}

bool Rendezvous::has_all(const Key& key, std::span<const int> ranks) const noexcept {
  const std::lock_guard guard(lock_);
  const auto found = heads_.find(key);
  if (found == heads_.end() || found->second.size() < ranks.size()) return false;
  return std::ranges::all_of(ranks,
                             [&found](int rank) { return found->second.contains(static_cast<std::uint32_t>(rank)); });
}

bool Rendezvous::is_refused(const Key& key, std::span<const int> ranks) const noexcept {
  const std::lock_guard guard(lock_);
  const auto found = heads_.find(key);
  if (found == heads_.end()) return false;
  return std::ranges::any_of(ranks, [&found](int rank) {
    const auto head = found->second.find(static_cast<std::uint32_t>(rank));
    return head != found->second.end() && (head->second.as<Ready>().flags & join_refused) != 0;
  });
}

std::vector<fabric::Head> Rendezvous::take(const Key& key, std::span<const int> ranks) {
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
