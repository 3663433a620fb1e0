#pragma once

#include "fabric/head.hpp"

#include <tonari/status.hpp>

#include <cstdint>
#include <vector>

namespace tonari::job {
class Session;
}

namespace tonari::fabric {

/// Tells every rank of a death on another host, whether or not it has a connection to the dead rank. Each rank has a
/// watcher on the host before its own. The watcher has a connection to it (`rank_watches`) and, when that breaks, tells
/// all ranks (`rank_died`). When a watcher dies, its own watcher takes its place.
///
/// Threads: the holder of the progress lock.
class FailureDetector {
 public:
  /// `session`: must have ranks on several hosts.
  explicit FailureDetector(const job::Session& session);

  /// The connection to `rank`, of another host, has broken before it left. Tells all ranks if this rank is the watcher.
  void found_dead(int rank) noexcept;
  /// A rank has died: watches the ranks that it watched, if this rank takes its place.
  void take_over_watched() noexcept;

  /// Sends the heads that are owed, by `send(peer, head)`, as far as there is room.
  template <class Send>
  void tell(Send&& send) noexcept {
    if (!owes_) [[likely]]
      return;
    owes_ = false;
    for (int rank = 0; rank < size_; ++rank) owes_ = !tell_of(rank, send) || owes_;
  }

 private:
  enum class WatchState : std::uint8_t { no, owed, yes };

  template <class Send>
  bool tell_of(int rank, Send& send) noexcept {
    const auto index = static_cast<std::size_t>(rank);
    if (watch_states_[index] == WatchState::owed) {
      if (send(rank, head(Kind::rank_watches, rank)) == Status::again) return false;
      watch_states_[index] = WatchState::yes;
    }
    for (int& to = told_[index]; to < size_; ++to) {
      if (is_to_be_told(to) && send(to, head(Kind::rank_died, rank)) == Status::again) return false;
    }
    return true;
  }
  [[nodiscard]] Head head(Kind kind, int of) const noexcept;
  [[nodiscard]] bool is_to_be_told(int rank) const noexcept;
  [[nodiscard]] int watcher_of(int rank) const noexcept;

  const job::Session& session_;
  int size_;
  std::vector<int> first_watcher_;        // by rank
  std::vector<WatchState> watch_states_;  // by rank: whether this rank watches it
  std::vector<int> told_;                 // by rank: all ranks below this one know of its death
  bool owes_ = false;
};

}  // namespace tonari::fabric
