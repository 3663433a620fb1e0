#include "window/state/members.hpp"

#include "window/window_runtime.hpp"

#include <algorithm>
#include <utility>

namespace tonari::window {

Members::Members(WindowRuntime& runtime, Group group, const Layout& layout)
    : runtime_(runtime),
      engine_(runtime.engine()),
      layout_(layout),
      group_(std::move(group)),
      self_(static_cast<std::size_t>(job::position_in(group_, engine_.session().rank()))) {
  const job::Session& session = engine_.session();
  std::vector<int> domains;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!engine_.is_remote(rank_of(i))) here_.push_back(i);
    const int domain = session.domain(rank_of(i));
    if (std::ranges::find(domains, domain) != domains.end()) continue;
    domains.push_back(domain);
    leaders_.push_back(rank_of(i));
  }
  if (leaders_.size() == 1) return;
  remote_ = std::make_unique<RemoteMember[]>(size());
  const bool alone = layout_.header().alone != 0;  // in a local window, only ranks that reach it count on it
  for (std::size_t i = 0; i < size(); ++i) {
    if (engine_.is_remote(rank_of(i))) remote_[i].counts_on_us.store(!alone, std::memory_order_relaxed);
  }
}

RemoteMember* Members::find_remote(int rank) const noexcept {
  const int position = job::position_in(group_, rank);
  if (remote_ == nullptr || position < 0 || !engine_.is_remote(rank)) return nullptr;
  return &remote_[static_cast<std::size_t>(position)];
}

bool Members::is_gone(std::size_t member) const noexcept {
  const int rank = rank_of(member);
  if (engine_.is_remote(rank)) {  // has_gone(): its heads that had arrived are handled
    return runtime_.has_gone(rank) || remote_[member].state.load(std::memory_order_acquire) == PartState::freed;
  }
  return !engine_.session().alive(rank) || runtime_.has_gone(rank) ||
         layout_.member(member).state.load(std::memory_order_acquire) == PartState::freed;
}

std::size_t Members::count_dead() const noexcept {
  if (engine_.session().arena().header().deaths.load(std::memory_order_acquire) == 0) return 0;
  return static_cast<std::size_t>(
      std::ranges::count_if(group_.ranks(), [this](JobRank rank) { return !engine_.session().alive(rank.value()); }));
}

void Members::wake_others() const noexcept {
  for (std::size_t i = 0; i < size(); ++i) {
    if (i != self_) engine_.wake_if_asleep(rank_of(i));
  }
}

}  // namespace tonari::window
