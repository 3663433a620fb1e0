#include "share/guarded/replica_table.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tonari::share {

using fabric::Head;

std::shared_ptr<Replica> ReplicaTable::make(std::size_t bytes, const GuardedOptions& options) {
  free_what_is_over();
  const std::lock_guard guard(mutex_);
  const std::size_t number = replicas_.size();
  if (number == replicas_.capacity()) replicas_.reserve(2 * number + 16);  // so that open() has room
  const GuardedPlan plan{static_cast<std::uint32_t>(number), bytes, options, branches_};
  return std::make_shared<Replica>(engine_, send_queue_, held_, plan);
}

void ReplicaTable::open(const std::shared_ptr<Replica>& made, std::span<const std::byte> initial,
                        std::optional<Window> window, std::unique_ptr<window::Put> put) noexcept {
  made->open(initial, std::move(window), std::move(put));
  const std::lock_guard guard(mutex_);
  const std::size_t number = replicas_.size();
  replicas_.push_back(made);
  std::erase_if(undelivered_, [&](const Head& head) {  // with the lock held: heads that arrive now wait for it
    if (head.context != number) return false;
    --undelivered_from_[head.source];
    made->receive(head);
    return true;
  });
  for (const int rank : dead_) made->died(rank);
}

void ReplicaTable::free(const std::shared_ptr<Replica>& freed) noexcept {
  freed->free();
  {
    const std::lock_guard guard(mutex_);
    for (auto& each : replicas_) {
      if (each == freed && freed->is_over()) each.reset();
    }
  }
  free_what_is_over();
}

void ReplicaTable::keep(Window&& window, std::function<bool(Window&)> needs) {
  {
    const std::lock_guard guard(mutex_);
    kept_.push_back({std::move(window), std::move(needs)});
  }
  free_what_is_over();
}

// Called by a thread of the program, since freeing a window may wait.
void ReplicaTable::free_what_is_over() noexcept {
  std::vector<std::shared_ptr<Replica>> over;  // destroyed with no lock held, like the next
  std::list<Kept> unneeded;
  const std::lock_guard guard(mutex_);
  over.swap(over_);
  for (auto each = kept_.begin(); each != kept_.end();) {
    const auto next = std::next(each);
    if (!each->needs(each->window)) unneeded.splice(unneeded.end(), kept_, each);
    each = next;
  }
}

void ReplicaTable::end() noexcept {
  std::vector<std::shared_ptr<Replica>>
      all;  // destroyed with no lock held, like the next: their windows wait for other ranks
  std::vector<std::shared_ptr<Replica>> over;
  std::list<Kept> kept;
  const std::lock_guard guard(mutex_);
  all.swap(replicas_);
  over.swap(over_);
  kept.swap(kept_);
}

void ReplicaTable::receive(const Head& head) noexcept {
  if (head.source >= static_cast<std::uint32_t>(engine_.session().size())) return;  // malformed: drop it
  std::shared_ptr<Replica> found;
  {
    const std::lock_guard guard(mutex_);
    if (head.context < replicas_.size()) {
      found = replicas_[head.context];
    } else if (keep_undelivered(head)) {
      return;
    }
  }
  if (found == nullptr) return drop(head);
  found->receive(head);
  let_go(head.context, std::move(found));
}

void ReplicaTable::let_go(std::uint32_t number, std::shared_ptr<Replica> used) noexcept {
  const std::lock_guard guard(mutex_);
  auto& kept = replicas_[number];
  if (kept == used && used->is_over()) kept.reset();
  if (kept == used) {
    used.reset();  // the table still holds a reference
  } else {
    over_.push_back(std::move(used));
  }
}

// Returns false if the peer has sent too many heads for unknown variables.
bool ReplicaTable::keep_undelivered(const Head& head) noexcept {
  std::size_t& count = undelivered_from_[head.source];
  if (count == undelivered_max) return false;
  ++count;
  undelivered_.push_back(head);
  return true;
}

void ReplicaTable::drop(const Head& head) noexcept {
  if (head.kind.has_tail()) engine_.give_back(static_cast<int>(head.source), head.as<fabric::Tail>().place);
}

void ReplicaTable::retry() noexcept {
  if (!held_back()) return;
  for (std::uint32_t number = 0;; ++number) {
    std::shared_ptr<Replica> each;
    {
      const std::lock_guard guard(mutex_);
      if (number >= replicas_.size()) return;
      each = replicas_[number];
    }
    if (each == nullptr) continue;
    each->retry();
    let_go(number, std::move(each));
  }
}

void ReplicaTable::died(int rank) noexcept {
  std::vector<std::shared_ptr<Replica>> all;
  {
    const std::lock_guard guard(mutex_);
    dead_.push_back(rank);
    all = replicas_;
  }
  for (std::uint32_t number = 0; number < all.size(); ++number) {
    if (all[number] == nullptr) continue;
    all[number]->died(rank);
    let_go(number, std::move(all[number]));
  }
}

}  // namespace tonari::share
