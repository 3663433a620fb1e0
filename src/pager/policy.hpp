#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tonari::pager {

class Region;

/// The policy's data about a block, stored in the block.
struct PolicyEntry {
  enum class Queue : std::uint8_t { none, recent, proven, passed, ghost };

  PolicyEntry* older = nullptr;
  PolicyEntry* newer = nullptr;
  Region* region = nullptr;  // the block's region, for the taker of a victim
  std::size_t block = 0;
  Queue queue = Queue::none;
  Queue came_from = Queue::none;  // its queue when it was taken out
};

/// Decides which block to take out next: S3-FIFO. A new block is *recent*. A block that is wanted again soon after it
/// was taken out is *proven*, and outlasts any scan. Blocks that a stream has *passed* leave first, the newest of them
/// first, except for a few: a program that repeats a loop over the same data needs the blocks next that were passed
/// longest ago. A block that leaves while it is recent leaves a *ghost*: if it comes back before the ghost is dropped,
/// it is proven.
///
///   comes --> recent --victim--> [beside] --nobody wants it--> ghost --comes--> proven
///                |                   +--wanted again--> proven --victim--> [beside] --nobody wants it--> forgotten
///                +--a stream goes on--> passed --victim--> forgotten
///
/// The pager cannot see that a block is used while it is here. It sees that after the block was taken out, as long as
/// its pages are beside: moving them back costs a fault, but no copy.
///
/// Threads: one at a time.
/// Costs:   a few loads and stores per call; no allocation.
class Policy {
 public:
  /// Pages of the block have come from the source.
  void came(PolicyEntry& entry) noexcept;
  /// A page that was taken out, and is beside, is wanted again.
  void wanted_again(PolicyEntry& entry) noexcept;
  /// A stream has gone on from the block.
  void passed(PolicyEntry& entry) noexcept;
  /// Returns the next block to take out, or nullptr. It is in no queue until one of the next three calls.
  PolicyEntry* take_victim() noexcept;
  /// The block becomes the newest of its queue. The next victim is from another queue if possible: the block may be
  /// the only one of its queue, and held by the thread that needs room.
  void could_not_go(PolicyEntry& entry) noexcept;
  void went(PolicyEntry& entry) noexcept;
  void forget(PolicyEntry& entry) noexcept;

  [[nodiscard]] std::size_t size() const noexcept {
    return list(Queue::recent).count + list(Queue::proven).count + list(Queue::passed).count;
  }

 private:
  using Queue = PolicyEntry::Queue;
  static constexpr std::size_t recent_percent = 10;  // of all; with more, recent blocks leave before proven ones

  struct List {
    PolicyEntry* oldest = nullptr;
    PolicyEntry* newest = nullptr;
    std::size_t count = 0;
  };
  [[nodiscard]] List& list(Queue queue) noexcept { return lists_[static_cast<std::size_t>(queue)]; }
  [[nodiscard]] const List& list(Queue queue) const noexcept { return lists_[static_cast<std::size_t>(queue)]; }
  [[nodiscard]] Queue next_queue() const noexcept;
  [[nodiscard]] PolicyEntry* newest_but_some() const noexcept;
  void append(Queue queue, PolicyEntry& entry) noexcept;
  void move_to(Queue queue, PolicyEntry& entry) noexcept;

  std::array<List, 5> lists_{};
  Queue refused_ = Queue::none;  // the last victim's queue, if it could not go
};

}  // namespace tonari::pager
