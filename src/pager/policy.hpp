#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tonari::pager {

class Region;

/// What the policy keeps of a block, in it.
struct PolicyEntry {
  enum class Queue : std::uint8_t { none, recent, proven, passed, ghost };

  PolicyEntry* older = nullptr;
  PolicyEntry* newer = nullptr;
  Region* region = nullptr;  // whose block it is: for who is given it as a victim
  std::size_t block = 0;
  Queue queue = Queue::none;
  Queue came_from = Queue::none;  // when it was taken out
};

/// Which block to take out next: S3-FIFO. A block that comes is *recent*; one that is wanted again soon after it was
/// taken out is *proven*, and stays longer than any scan lasts; one that a stream has *passed* goes first, the newest
/// of them but for a few: who goes round over the same data needs next what was passed longest ago. Those that went
/// while they were recent leave a *ghost*: if they come back before it fades, they are proven.
///
///    comes --> recent --victim--> [beside] --nobody wants it--> ghost --comes--> proven
///                 |                   +--wanted again--> proven --victim--> [beside] --nobody wants it--> forgotten
///                 +--a stream goes on--> passed --victim--> forgotten
///
/// That a block is used while it is here is not seen. It is seen when it has been taken out, as long as its pages are
/// beside: moving them back costs a fault and no copy.
///
/// Threads: one at a time.
/// Costs:   a few loads and stores each; no allocation.
class Policy {
 public:
  /// Some of its pages have come from the source.
  void came(PolicyEntry& entry) noexcept;
  /// A page that was taken out, and beside, is wanted again.
  void wanted_again(PolicyEntry& entry) noexcept;
  /// A stream has gone on from it.
  void passed(PolicyEntry& entry) noexcept;
  /// The next to be taken out, or null. It is in no queue until one of these three is called.
  PolicyEntry* take_victim() noexcept;
  void could_not_go(PolicyEntry& entry) noexcept;  // as new as any in its queue
  void went(PolicyEntry& entry) noexcept;
  void forget(PolicyEntry& entry) noexcept;

  [[nodiscard]] std::size_t size() const noexcept {
    return list(Queue::recent).count + list(Queue::proven).count + list(Queue::passed).count;
  }

 private:
  using Queue = PolicyEntry::Queue;
  static constexpr std::size_t recent_percent = 10;  // of all; beyond that, recent ones go before proven ones

  struct List {
    PolicyEntry* oldest = nullptr;
    PolicyEntry* newest = nullptr;
    std::size_t count = 0;
  };
  [[nodiscard]] List& list(Queue queue) noexcept { return lists_[static_cast<std::size_t>(queue)]; }
  [[nodiscard]] const List& list(Queue queue) const noexcept { return lists_[static_cast<std::size_t>(queue)]; }
  [[nodiscard]] PolicyEntry* newest_but_some() const noexcept;
  void append(Queue queue, PolicyEntry& entry) noexcept;
  void move_to(Queue queue, PolicyEntry& entry) noexcept;

  std::array<List, 5> lists_{};
};

}  // namespace tonari::pager
