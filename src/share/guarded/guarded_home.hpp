#pragma once

#include "share/guarded/heads.hpp"

#include <deque>
#include <vector>

namespace tonari::share {

/// The home's part of a variable: orders what ranks ask for, and knows in which order ownership goes round.
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

  /// Who serves a request; that of a writer is served last of what is asked of that rank. -1: a peer lies.
  int server_of(const GuardWant& want);
  /// `rank` is the owner, by its request of that number.
  void has(int rank, std::uint64_t number) noexcept;
  /// False: the newest data may have died with `rank`, or whom it would have served waits for ever.
  [[nodiscard]] bool survives(int rank) const noexcept;
  /// The same, now that `waiting`, whom all has reached that `dead` ever sent, still waits.
  [[nodiscard]] bool survives(int dead, int waiting) const noexcept {
    return chain_.size() < 2 || chain_[0].rank != dead || chain_[1].rank != waiting;
  }
  /// `rank` needs the variable no more, or is dead. True: nor does any other.
  bool frees(int rank) noexcept;

 private:
  struct Link {
    int rank;
    std::uint64_t number;  // of its request
  };
  [[nodiscard]] std::deque<Link>::const_iterator find(int rank) const noexcept;

  std::deque<Link> chain_;   // the owner, or one before it of whom nothing was heard since; then who waits to write
  std::vector<char> freed_;  // by rank
  int left_;
};

}  // namespace tonari::share
