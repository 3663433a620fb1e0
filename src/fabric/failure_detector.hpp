#pragma once

#include "fabric/head.hpp"

#include <tonari/status.hpp>

#include <cstdint>
#include <vector>

namespace tonari::job {
class Session;
}

namespace tonari::fabric {

/// Sees to it that every rank learns of a death on another host, connected to the dead or not. Each rank is watched by
/// one of the host before its own, which has a connection to it (`rank_watches`) and, when that breaks, tells all
/// (`rank_died`). When a watcher dies its own watcher takes its place.
///
/// Threads: the holder of the progress lock.
class FailureDetector {
 public:
  /// `session`: of ranks on several hosts.
  explicit FailureDetector(const job::Session& session);

  /// The connection to a rank of another host has broken, which had not left: tells all, if that is this rank's to do.
  void found_dead(int rank) noexcept;
  /// Some rank has died: watches whoever that one watched.
  void take_over_watched() noexcept;

  /// Sends what is to be sent by `send(peer, head)`, as far as there is room.
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
  std::vector<WatchState> watch_states_;  // by rank: whom this one watches
  std::vector<int> told_;                 // by rank: of its death those before this one know
  bool owes_ = false;
};

}  // namespace tonari::fabric
