#include "pager/policy.hpp"

#include <algorithm>

namespace tonari::pager {

void Policy::came(PolicyEntry& entry) noexcept {
  if (entry.queue == Queue::none) append(Queue::recent, entry);
  if (entry.queue == Queue::ghost) move_to(Queue::proven, entry);
}

void Policy::wanted_again(PolicyEntry& entry) noexcept {
  // A block that a stream had passed proves nothing: other streams follow the first.
  move_to(entry.came_from == Queue::passed ? Queue::recent : Queue::proven, entry);
}

void Policy::passed(PolicyEntry& entry) noexcept {
  if (entry.queue == Queue::recent) move_to(Queue::passed, entry);
}

PolicyEntry* Policy::take_victim() noexcept {
  const Queue queue = next_queue();
  refused_ = Queue::none;
  PolicyEntry* const victim = queue == Queue::passed ? newest_but_some() : list(queue).oldest;
  if (victim == nullptr) return nullptr;
  forget(*victim);
  victim->came_from = queue;
  return victim;
}

PolicyEntry::Queue Policy::next_queue() const noexcept {
  const std::size_t recent = list(Queue::recent).count;
  const std::size_t proven = list(Queue::proven).count;
  const bool has_many_recent = recent * 100 > (recent + proven) * recent_percent;
  const std::array order{Queue::passed, has_many_recent ? Queue::recent : Queue::proven,
                         has_many_recent ? Queue::proven : Queue::recent};
  const auto can_go = [&](Queue each) { return each != refused_ && list(each).count != 0; };
  const auto found = std::ranges::find_if(order, can_go);
  return found != order.end() ? *found : refused_;
}

// Spares the newest few for other streams that follow closely.
PolicyEntry* Policy::newest_but_some() const noexcept {
  constexpr int spared = 8;
  PolicyEntry* entry = list(Queue::passed).newest;
  for (int i = 0; i < spared && entry != nullptr && entry->older != nullptr; ++i) entry = entry->older;
  return entry;
}

void Policy::could_not_go(PolicyEntry& entry) noexcept {
  if (entry.queue != Queue::none) return;  // it was no victim
  refused_ = entry.came_from;
  append(entry.came_from, entry);
}

void Policy::went(PolicyEntry& entry) noexcept {
  if (entry.queue != Queue::none || entry.came_from != Queue::recent) return;
  append(Queue::ghost, entry);
  constexpr std::size_t ghosts_min = 16;
  if (list(Queue::ghost).count > std::max(size(), ghosts_min)) forget(*list(Queue::ghost).oldest);
}

void Policy::forget(PolicyEntry& entry) noexcept {
  if (entry.queue == Queue::none) return;
  List& from = list(entry.queue);
  (entry.older != nullptr ? entry.older->newer : from.oldest) = entry.newer;
  (entry.newer != nullptr ? entry.newer->older : from.newest) = entry.older;
  --from.count;
  entry.older = entry.newer = nullptr;
  entry.queue = Queue::none;
}

void Policy::append(Queue queue, PolicyEntry& entry) noexcept {
  List& to = list(queue);
  entry.older = to.newest;
  entry.newer = nullptr;
  (to.newest != nullptr ? to.newest->newer : to.oldest) = &entry;
  to.newest = &entry;
  ++to.count;
  entry.queue = queue;
}

void Policy::move_to(Queue queue, PolicyEntry& entry) noexcept {
  forget(entry);
  append(queue, entry);
}

}  // namespace tonari::pager
