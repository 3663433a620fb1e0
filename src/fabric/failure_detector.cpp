#include "fabric/failure_detector.hpp"

#include "job/session.hpp"

namespace tonari::fabric {

namespace {

// Returns the first watcher of each rank. The ranks of the host before take turns at watching.
std::vector<int> first_watchers(const job::Session& session) {
  std::vector<std::vector<int>> of_host(static_cast<std::size_t>(session.hosts()));
  std::vector<std::size_t> place;
  for (int rank = 0; rank < session.size(); ++rank) {
    auto& ranks = of_host[static_cast<std::size_t>(session.host(rank))];
    place.push_back(ranks.size());
    ranks.push_back(rank);
  }
  std::vector<int> watchers;
  for (int rank = 0; rank < session.size(); ++rank) {
    const auto host = static_cast<std::size_t>(session.host(rank));
    const auto& before = of_host[(host + of_host.size() - 1) % of_host.size()];
    watchers.push_back(before[place[static_cast<std::size_t>(rank)] % before.size()]);
  }
  return watchers;
}

}  // namespace

FailureDetector::FailureDetector(const job::Session& session)
    : session_(session),
      size_(session.size()),
      first_watcher_(first_watchers(session)),
      watch_states_(first_watcher_.size(), WatchState::no),
      told_(first_watcher_.size(), size_) {
  take_over_watched();
}

void FailureDetector::found_dead(int rank) noexcept {
  if (watcher_of(rank) != session_.rank()) return;
  told_[static_cast<std::size_t>(rank)] = 0;
  owes_ = true;
}

void FailureDetector::take_over_watched() noexcept {
  for (int rank = 0; rank < size_; ++rank) {
    WatchState& state = watch_states_[static_cast<std::size_t>(rank)];
    if (state != WatchState::no || !session_.is_on_other_host(rank) || watcher_of(rank) != session_.rank()) continue;
    state = WatchState::owed;
    owes_ = true;
    // The previous watcher may have died before it told all ranks.
    if (!session_.alive(rank)) told_[static_cast<std::size_t>(rank)] = 0;
  }
}

// Returns the first living rank in the chain of watchers. If all ranks of the chain have died, the result is
// irrelevant: no rank is left to be told.
int FailureDetector::watcher_of(int rank) const noexcept {
  int watcher = first_watcher_[static_cast<std::size_t>(rank)];
  for (int steps = 0; steps < size_ && !session_.alive(watcher); ++steps) {
    watcher = first_watcher_[static_cast<std::size_t>(watcher)];
  }
  return watcher;
}

bool FailureDetector::is_to_be_told(int rank) const noexcept { return rank != session_.rank() && session_.alive(rank); }

Head FailureDetector::head(Kind kind, int of) const noexcept {
  Head head{};
  head.kind = kind;
  head.source = static_cast<std::uint32_t>(session_.rank());
  head.tag = static_cast<std::uint32_t>(of);
  return head;
}

}  // namespace tonari::fabric
