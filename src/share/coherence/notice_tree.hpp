#pragma once

#include "share/array/page_block.hpp"
#include "share/coherence/requests.hpp"

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

/// How many ranks one tells itself, at most: a message more costs it a fraction of a microsecond, and a rank in between
/// that computes costs all behind it a wake-up.
inline constexpr std::size_t branches_max = 8;

/// Parts `ranks` among at most branches_max of them: calls visit(rank, those whom it tells in its turn).
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

/// Passes on what many are told: a tree. Nothing here waits: whom it cannot reach at once, for want of room or since
/// they are gone, it names in its answer, and who released tells them itself.
///
///   who released           this rank                 the next
///        |-- notices ---------->|-- notices ------------>|      Words::first: who released
///        |                      |<---------- noted ------|      Words::extra: whom it tells in its turn
///        |<---------- noted ----|                               of noted, Words::first: who was not reached
class NoticeTree {
 public:
  explicit NoticeTree(SharedMemory& sharing) noexcept : shared_memory_(sharing) {}

  class Relay;
  /// Null: there is nobody to pass it on to. Else `peer` is answered when all have answered, and this rank has called
  /// end_one(). By the progress lock's holder.
  Relay* pass_on(fabric::Kind kind, int peer, const Words& request, std::span<const std::byte> tail);
  [[nodiscard]] std::size_t most_at_once() const noexcept { return notice_tree_.size(); }  // for tests

 private:
  struct Branch;
  Relay& free_one();

  SharedMemory& shared_memory_;
  std::vector<std::unique_ptr<Relay>> notice_tree_;  // by the progress lock's holder
};

/// Whom a relay tells.
struct NoticeTree::Branch final : PendingRequest {
  Branch(Relay& of, Ranks whom) noexcept : relay(of), ranks(whom) {}
  Relay& relay;
  Ranks ranks;  // this one and those behind it

 private:
  void answered() noexcept override;
};

class NoticeTree::Relay {
 public:
  explicit Relay(SharedMemory& sharing) noexcept : shared_memory_(sharing) {}
  [[nodiscard]] bool is_free() const noexcept;
  void begin(int peer, const Words& request) noexcept;
  void tell(int rank, Ranks behind, fabric::Kind kind, const Words& request, std::span<const std::byte> tail);
  void answered(const Branch& branch) noexcept;
  /// Each answer, and that all have been told. The last one answers `peer_`.
  void end_one() noexcept;

 private:
  SharedMemory& shared_memory_;
  int peer_ = -1;
  Words reply_{};
  // Answers come by the progress lock's holder, and from the service thread when a rank dies.
  std::atomic<std::uint32_t> pending_{0};  // release and acquire: with `missed_`
  std::atomic<Ranks> missed_{0};
  std::deque<Branch> branches_;
};

}  // namespace tonari::share
