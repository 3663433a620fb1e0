#pragma once

#include "share/array/page_block.hpp"
#include "share/coherence/heads.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace tonari::share {

class SharedMemory;

/// Number of ranks that a rank tells itself, at most. One more message costs it a fraction of a microsecond, while an
/// intermediate rank that computes delays all ranks below it by a wake-up.
inline constexpr std::size_t branches_max = 8;

/// Divides `ranks` among at most branches_max of them: calls visit(rank, the ranks that it has to tell in its turn).
template <class Visit>
void for_each_branch(Ranks ranks, Visit visit) {
  for (std::size_t left = branches_max; ranks != 0; --left) {
    const std::size_t count = (static_cast<std::size_t>(std::popcount(ranks)) + left - 1) / left;
    Ranks behind = ranks & (ranks - 1);
    for (std::size_t i = 1; i < count; ++i) behind &= behind - 1;
    const Ranks part = ranks & ~behind;
    visit(std::countr_zero(part), part & (part - 1));
    ranks = behind;
  }
}

/// Passes notices for many ranks on, down a tree. Nothing here waits. A rank that cannot be reached at once, because
/// there is no room or it has died, is named in the reply, and the releasing rank tells it itself.
///
///   releasing rank         this rank              a rank below
///        |-- notices ---------->|-- notices ------------>|      Words::first: the releasing rank
///        |                      |<---------- noted ------|      Words::extra: the ranks to tell in turn
///        |<---------- noted ----|                               in noted, Words::first: the ranks not reached
class NoticeTree {
 public:
  explicit NoticeTree(SharedMemory& shared_memory) noexcept : shared_memory_(shared_memory) {}

  class Relay;
  /// Passes the notices on to the ranks below. Returns null if there are none. Otherwise the relay replies to `peer`
  /// when all of them have replied and this rank has called end_one(). Called by the holder of the progress lock.
  Relay* pass_on(Kind kind, int peer, const Words& request, std::span<const std::byte> tail);
  [[nodiscard]] std::size_t most_at_once() const noexcept { return relays_.size(); }  // for tests: relays made so far

 private:
  struct Branch;
  Relay& free_one();

  SharedMemory& shared_memory_;
  std::vector<std::unique_ptr<Relay>> relays_;  // used by the holder of the progress lock
};

/// One of the ranks that a relay tells.
struct NoticeTree::Branch final : PendingRequest {
  Branch(Relay& of, Ranks whom) noexcept : relay(of), ranks(whom) {}
  Relay& relay;
  Ranks ranks;  // this rank and the ranks below it

 private:
  void answered() noexcept override;
};

class NoticeTree::Relay {
 public:
  explicit Relay(SharedMemory& shared_memory) noexcept : shared_memory_(shared_memory) {}
  [[nodiscard]] bool is_free() const noexcept;
  void begin(int peer, const Words& request) noexcept;
  void tell(int rank, Ranks behind, Kind kind, const Words& request, std::span<const std::byte> tail);
  void answered(const Branch& branch) noexcept;
  /// Called for each reply, and once when all messages were sent and handled here. The last call replies to `peer_`.
  void end_one() noexcept;

 private:
  SharedMemory& shared_memory_;
  int peer_ = -1;
  Words reply_{};
  // Replies come from the holder of the progress lock, and from the service thread when a rank dies.
  std::atomic<std::uint32_t> pending_{0};  // release and acquire: orders `missed_`
  std::atomic<Ranks> missed_{0};
  std::deque<Branch> branches_;
};

}  // namespace tonari::share
