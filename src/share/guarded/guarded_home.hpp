#pragma once

#include "share/guarded/heads.hpp"

#include <deque>
#include <vector>

namespace tonari::share {

/// The home's part of a variable: orders the requests of the ranks, and knows to which ranks ownership passes next.
///
///   rank            home            last in the chain          next in the chain
///    |-- want ------->|-- deed ------->|                            |
///    |                |                |  .. until it is its turn   |
///    |<-- given, with ownership and data                            |
///    |-- has -------->|
///
/// Threads: one at a time.
class GuardedHome {
 public:
  GuardedHome(int self, int ranks) : chain_{{self, 0}}, freed_(static_cast<std::size_t>(ranks)), left_(ranks) {}

  /// Returns the rank that serves a request, or -1 if it is malformed. A rank serves a writer's request after all
  /// others that it was sent.
  int server_of(const GuardWant& want);
  /// Notes that `rank` has become the owner, by its request with that number.
  void has(int rank, std::uint64_t number) noexcept;
  /// Returns false if the newest data may have died with `rank`, or a rank that it should have served would wait for
  /// ever.
  [[nodiscard]] bool survives_death_of(int rank) const noexcept;
  /// The same, knowing that rank `waiting` still waits after it has handled the heads of `dead` that had arrived.
  [[nodiscard]] bool survives_death_of(int dead, int waiting) const noexcept {
    return chain_.size() < 2 || chain_[0].rank != dead || chain_[1].rank != waiting;
  }
  /// Notes that `rank` no longer needs the variable, or is dead. Returns true if no rank needs it any more.
  bool frees(int rank) noexcept;

 private:
  struct Link {
    int rank;
    std::uint64_t number;  // of its request
  };
  [[nodiscard]] std::deque<Link>::const_iterator find(int rank) const noexcept;

  std::deque<Link>
      chain_;  // the owner, or an earlier owner if news are still on the way; then the ranks that wait to write
  std::vector<char> freed_;  // by rank
  int left_;
};

}  // namespace tonari::share
